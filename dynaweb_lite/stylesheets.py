"""How style sheets lay elements out, as far as text depends on it: their `display`, read from plain rules.

Rules inside @media and the like are passed over, and so are selectors that lxml does not know (`:hover`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cssselect import SelectorError
from cssselect import parse as parse_selector
from lxml import html
from lxml.cssselect import CSSSelector

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_RULE = re.compile(r"([^{}@;]+)\{([^{}]*)\}")
_NESTED = re.compile(r"@[^{};]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_DISPLAY = re.compile(r"(?:^|;)\s*display\s*:\s*([a-z-]+)\s*(!important)?")


def displays(document: html.HtmlElement, sheets: Sequence[str]) -> dict[html.HtmlElement, str]:
    """The `display` of each element that a rule or its own style sets; the most specific, last rule wins."""
    rules = sorted((rule for sheet in sheets for rule in display_rules(sheet)), key=lambda rule: rule[0])
    found = {e: display for _, select, display in rules for e in select(document)}
    for element in document.iterfind(".//*[@style]"):
        if own := _DISPLAY.search(element.get("style").lower()):
            found[element] = own[1]
    return found


@lru_cache(maxsize=32)
def display_rules(css: str) -> list[tuple[tuple, CSSSelector, str]]:
    """Rules of a style sheet that set `display`, in order: (weight, selector, display)."""
    rules = []
    plain = _NESTED.sub("", _COMMENT.sub("", css))
    for selectors, body in _RULE.findall(plain):
        if not (match := _DISPLAY.search(body.lower())):
            continue
        for selector in selectors.split(","):
            try:
                weight = parse_selector(selector.strip())[0].specificity()
                rules.append(((bool(match[2]), *weight), CSSSelector(selector.strip()), match[1]))
            except SelectorError:
                continue
    return rules
