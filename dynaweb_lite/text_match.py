"""Does a text equal a reference, or hold it? The comparisons of the default evaluator (evaluators.py lists what differs
from WebArena's own, which strict_evaluators.py reproduces).

A number is compared as a number and as a whole: `12` is not in `120`, and `$0.00` is 0. A reference with leading zeros
is a code (a postcode, an order number) and must stand there digit by digit.
"""

from __future__ import annotations

import re
from decimal import Decimal

from dynaweb_lite.observation import one_line

ALTERNATIVES = " |OR| "
SHORT_WORD = 2
"""References of so few letters count only as whole words: "Lo" is not in "following"."""
_NUMBER = re.compile(r"(?<![\d.])(?:(?<![\w)])-)?\$?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?!\d)")
_AMOUNT = re.compile(r"(-?)\$?(-?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?")


def clean(text: str) -> str:
    """What counts of a text: not capitals, outer quotes or white space, nor the British ll of "cancelled"."""
    text = one_line(str(text))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return re.sub(r"\bcancell(ed|ing)\b", r"cancel\1", text.lower())


def alternatives(reference: str) -> list[str]:
    return str(reference).split(ALTERNATIVES)


def exact_match(reference: str, text: str) -> bool:
    """Equal after cleaning; amounts are equal as numbers ("$0.00" and "0"). ` |OR| ` parts alternatives."""
    return any(_same(r, text) for r in alternatives(reference))


def _same(reference: str, text: str) -> bool:
    left, right = clean(reference), clean(text)
    return left == right or (amount(left) is not None and amount(left) == amount(right))


def must_include(reference: str, text: str) -> bool:
    """Whether a text holds the reference, numbers and very short words as a whole. ` |OR| ` parts alternatives."""
    return any(_includes(clean(r), clean(text)) for r in alternatives(reference))


def _includes(wanted: str, text: str) -> bool:
    if (number := amount(wanted)) is not None:
        return any(amount(found, padded=True) == number for found in _NUMBER.findall(text))
    head, tail = r"(?<!\d)(?<!\d[.,])(?<!\.)" if wanted[:1].isdigit() else "", ""
    if wanted[-1:].isdigit():
        tail = r"(?![.,]?\d)"
    elif wanted.isalpha() and len(wanted) <= SHORT_WORD:
        head, tail = r"\b", r"\b"
    return re.search(head + re.escape(wanted) + tail, text) is not None


def amount(text: str, padded: bool = False) -> Decimal | None:
    """The number that a text is, with or without a dollar sign and thousands separators, else None.

    A text with leading zeros is a code and no number, unless `padded` lets it be one ("000000170" is order 170).
    """
    match = _AMOUNT.fullmatch(text.strip())
    if not match or (match[1] and match[2]):
        return None
    if not padded and re.match(r"0\d", match[3]):
        return None
    return Decimal((match[1] or match[2]) + match[3].replace(",", "") + (match[4] or ""))
