"""HTML forms as a browser fills them in, checks them, sends them and restores them.

The attributes of the parsed document hold the state: `value`, `checked` and `selected` are what is typed and chosen
now.
"""

from __future__ import annotations

import re
from urllib.parse import quote_plus

from lxml import html

from dynaweb_lite.accessibility import BUTTON_TYPES, chosen_options, field_value, is_disabled, option_label
from dynaweb_lite.actions import Action
from dynaweb_lite.observation import one_line

NOT_SENT = "the form was not sent: a required field is empty or wrong"


def is_active(element: html.HtmlElement) -> bool:
    """Whether a click on or inside the element does something."""
    return element.tag in ("button", "input", "select", "option", "textarea", "label") or (
        element.tag == "a" and element.get("href") is not None
    )


def is_submit(element: html.HtmlElement) -> bool:
    default = {"button": "submit", "input": "text"}.get(element.tag, "")
    return element.tag in ("button", "input") and element.get("type", default).lower() in ("submit", "image")


def owner(element: html.HtmlElement) -> html.HtmlElement:
    form = form_of(element)
    return element.getroottree().getroot() if form is None else form


def form_of(element: html.HtmlElement) -> html.HtmlElement | None:
    """The form that a control belongs to, or None."""
    if name := element.get("form"):
        return next(iter(element.getroottree().xpath("//form[@id=$name]", name=name)), None)
    return next(element.iterancestors("form"), None)


def form_controls(form: html.HtmlElement) -> list[html.HtmlElement]:
    """The controls of a form in document order, those outside that name it included."""
    root = form.getroottree().getroot()
    return [e for e in root.iter("input", "select", "textarea", "button") if form_of(e) is form]


def form_pairs(element: html.HtmlElement, button: html.HtmlElement | None) -> list[tuple[str, str]]:
    """What a control adds to a form that is sent by `button`."""
    name, kind = element.get("name"), element.get("type", "").lower()
    if not name or is_disabled(element):
        return []
    if element.tag == "button" or (element.tag == "input" and kind in BUTTON_TYPES):
        return [(name, element.get("value", ""))] if element is button else []
    if kind in ("checkbox", "radio") and element.tag == "input":
        return [(name, element.get("value", "on"))] if element.get("checked") is not None else []
    if element.tag == "select":
        return [(name, option_value(o)) for o in chosen_options(element) if o.get("disabled") is None]
    return [(name, re.sub(r"\r?\n", "\r\n", field_value(element)))]


def form_quote(text: str) -> str:
    """Text as forms send it: Python quotes all but `*` and `~` alike."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def is_valid(element: html.HtmlElement) -> bool:
    """Whether a control lets its form be sent."""
    if is_disabled(element) or element.get("type") == "hidden":
        return True
    value, kind = "".join(v for _, v in form_pairs(element, None)) or field_value(element), element.get("type", "")
    if kind in ("checkbox", "radio"):
        group = [e for e in form_controls(owner(element)) if kind == "radio" and e.get("name") == element.get("name")]
        value = "on" if any(e.get("checked") is not None for e in group or [element]) else ""
    if element.get("required") is not None and not value:
        return False
    if kind == "number" and value:
        return float(element.get("min", "-inf")) <= float(value) <= float(element.get("max", "inf"))
    return not (kind == "email" and value) or re.fullmatch(r"[^@\s]+@[\w-]+(\.[\w-]+)*", value) is not None


def option_value(option: html.HtmlElement) -> str:
    return option.get("value", one_line(option.text_content()))


def toggle(element: html.HtmlElement, on: bool, attribute: str = "checked") -> None:
    if on:
        element.set(attribute, "")
    else:
        element.attrib.pop(attribute, None)


def set_chosen(option: html.HtmlElement) -> None:
    """Choose an option; in a list for one choice, the others are chosen no longer."""
    select = next(option.iterancestors("select"))
    for other in [] if select.get("multiple") is not None else list(select.iter("option")):
        toggle(other, False, "selected")
    toggle(option, True, "selected")


def choose(select: html.HtmlElement, action: Action) -> str:
    """Choose the option with this label. Returns why it cannot be, or an empty string."""
    wanted = one_line(action.text)
    for option in select.iter("option") if select.tag == "select" else ():
        if option_label(option) == wanted and option.get("disabled") is None:
            set_chosen(option)
            return ""
    return no_option(action)


def no_option(action: Action) -> str:
    return f"no option {one_line(action.text)!r} in [{action.element_id}]"


def control_keys(document: html.HtmlElement) -> list[tuple[tuple, html.HtmlElement]]:
    """Controls that a browser restores when it comes back to a page, each with what it is known by there."""
    counts: dict[tuple, int] = {}
    keys = []
    for element in document.iter("input", "select", "textarea"):
        if element.get("autocomplete") == "off" or owner(element).get("autocomplete") == "off":
            continue
        if element.get("type") in ("hidden", "password", *BUTTON_TYPES):
            continue
        key = (owner(element).get("action"), element.tag, element.get("type"), element.get("name"))
        counts[key] = counts.get(key, 0) + 1
        keys.append(((*key, counts[key]), element))
    return keys


def get_state(control: html.HtmlElement) -> str:
    """What a control holds, as `set_state` takes it."""
    if control.tag == "select":
        return "\n".join(option_value(o) for o in chosen_options(control))
    if control.get("type") in ("checkbox", "radio"):
        return "on" if control.get("checked") is not None else "off"
    return field_value(control)


def set_state(control: html.HtmlElement, state: str) -> None:
    if control.tag == "select":
        for option in control.iter("option"):
            toggle(option, option_value(option) in state.split("\n"), "selected")
    elif control.get("type") in ("checkbox", "radio"):
        toggle(control, state == "on")
    elif control.tag == "textarea":
        control.text = state
    else:
        control.set("value", state)
