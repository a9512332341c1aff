"""WebArena's action language: parse it, write it, check it against a page.

    click [12] · type [4] [red mug] [1] · select [7] [Price] · hover [3] · press [Enter] · scroll [down] ·
    goto [http://shop.test/] · go_back · go_forward · new_tab · tab_focus [0] · close_tab · stop [$12.50]

The last number of `type` says whether Enter follows (1, the default) or not (0).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dynaweb_lite.observation import INTERACTIVE_ROLES, Observation

ELEMENT_KINDS = ("click", "hover", "type", "select")
BARE_KINDS = ("go_back", "go_forward", "new_tab", "close_tab")
TYPING_ROLES = ("textbox", "searchbox", "combobox", "spinbutton")


class ActionError(ValueError):
    """The text holds no action of the language; the message names what was expected."""


@dataclass(frozen=True)
class Action:
    """One action. `text` is what is typed, pressed, chosen, opened or answered; `press_enter` belongs to type."""

    kind: str
    element_id: int | None = None
    text: str = ""
    press_enter: bool = True

    def __str__(self) -> str:
        if self.kind in BARE_KINDS:
            return self.kind
        if self.kind == "type":
            return f"type [{self.element_id}] [{self.text}] [{int(self.press_enter)}]"
        if self.kind == "select":
            return f"select [{self.element_id}] [{self.text}]"
        if self.kind in ELEMENT_KINDS:
            return f"{self.kind} [{self.element_id}]"
        return f"{self.kind} [{self.text}]"


_FENCED = re.compile(r"```(?:\w+\n)?\s*(.+?)\s*```", re.DOTALL)
_PATTERNS = [
    ("type", re.compile(r"type \[(\d+)\] \[(.*?)\](?: \[?(?:press_enter_after=)?([01])\]?)?", re.DOTALL)),
    ("select", re.compile(r"select \[(\d+)\] \[(.*?)\]", re.DOTALL)),
    ("click", re.compile(r"click \[(\d+)\]")),
    ("hover", re.compile(r"hover \[(\d+)\]")),
    ("scroll", re.compile(r"scroll \[?(?:direction=)?(up|down)\]?")),
    ("press", re.compile(r"press \[(.+?)\]")),
    ("goto", re.compile(r"goto \[(\S+?)\]")),
    ("tab_focus", re.compile(r"tab_focus \[(\d+)\]")),
    ("stop", re.compile(r"stop(?: \[(.*)\])?", re.DOTALL)),
]
_BROWSERGYM = [
    ("type", re.compile(r"fill\(\s*['\"](\d+)['\"]\s*,\s*(['\"])(.*?)\2\s*\)", re.DOTALL)),
    ("select", re.compile(r"select_option\(\s*['\"](\d+)['\"]\s*,\s*(['\"])(.*?)\2\s*\)", re.DOTALL)),
    ("click", re.compile(r"click\(\s*['\"](\d+)['\"]\s*\)")),
    ("hover", re.compile(r"hover\(\s*['\"](\d+)['\"]\s*\)")),
    ("goto", re.compile(r"goto\(\s*(['\"])(.*?)\1\s*\)")),
    ("stop", re.compile(r"send_msg_to_user\(\s*(['\"])(.*?)\1\s*\)", re.DOTALL)),
]


def parse_action(text: str) -> Action:
    """Read one action: bare, on the last line of other text, or in triple backticks; BrowserGym's spelling too.

    Raises ActionError that quotes the text when it holds none.
    """
    fenced = _FENCED.findall(text)
    stripped = text.strip()
    candidates = [fenced[-1].strip()] if fenced else [stripped, stripped.rsplit("\n", 1)[-1].strip()]
    for candidate in candidates:
        action = _webarena(candidate) or _browsergym(candidate)
        if action:
            return action
    shown = stripped if len(stripped) < 80 else stripped[:77] + "…"
    raise ActionError(f"not an action: {shown!r} (try: click [3], type [4] [words] [1], stop [answer])")


def _webarena(text: str) -> Action | None:
    if text in BARE_KINDS:
        return Action(text)
    for kind, pattern in _PATTERNS:
        if match := pattern.fullmatch(text):
            first = match[1] or ""
            if kind == "type":
                return Action("type", int(first), match[2], match[3] != "0")
            if kind == "select":
                return Action("select", int(first), match[2])
            if kind in ELEMENT_KINDS:
                return Action(kind, int(first))
            return Action(kind, text=first)
    return None


def _browsergym(text: str) -> Action | None:
    if text in [f"{kind}()" for kind in BARE_KINDS]:
        return Action(text[:-2])
    for kind, pattern in _BROWSERGYM:
        if match := pattern.fullmatch(text):
            if kind in ("type", "select"):
                return Action(kind, int(match[1]), match[3], press_enter=False)
            if kind in ELEMENT_KINDS:
                return Action(kind, int(match[1]))
            return Action(kind, text=match[2])
    return None


def check_action(action: Action, observation: Observation) -> str:
    """Why this action cannot be done on this page, or an empty string.

    Only what the page itself shows is checked; a browser may still refuse (a covered or disabled element).
    """
    if action.kind not in ELEMENT_KINDS:
        return ""
    element = observation.element(action.element_id)
    if element is None:
        return f"no element [{action.element_id}] on this page, whose ids run 1 to {len(observation.elements)}"
    if action.kind == "type" and element.role not in TYPING_ROLES:
        return f"cannot type into [{element.id}], a {element.role}"
    if action.kind == "select" and element.role not in ("combobox", "listbox"):
        return f"cannot select in [{element.id}], a {element.role}"
    return ""


def describe_action(action: Action, observation: Observation) -> str:
    """The action with the label of the element it touches: ``click [5] link 'Cart'``; the world model reads this."""
    element = observation.element(action.element_id) if action.element_id else None
    return f"{action} {element.label}" if element else str(action)


def possible_actions(observation: Observation) -> list[Action]:
    """A click for every interactive element of the page, in document order."""
    return [Action("click", e.id) for e in observation.elements if e.role in INTERACTIVE_ROLES]
