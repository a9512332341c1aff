"""WebArena's evaluators as they are, quirks included: what `strict="webarena"` compares with.

Known quirks, kept: a mere prefix of a path matches; the queries of all references are pooled; `12` is in `120`;
` |OR| ` is plain text in an answer's references; a whole page is its HTML; JavaScript's `undefined` reads "None"; a
reason that the judge accepts outweighs parts that failed; the judge's verdict is a substring of its reply.

Where the only reference has one character, WebArena looks for it among NLTK's tokens (`word_tokenize`).
`is_token` decides the same from the character's neighbours: what NLTK splits off (white space, brackets, quotes,
`;@#$%&?!*`, dashes, `:` and `,` before a non-digit, a clitic such as 's) parts tokens, and so does a full stop at the
end of a sentence. NLTK's trained sentence model is not here: a full stop ends a sentence at the end of the answer,
or before white space and what begins neither with a small letter nor with punctuation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from html import unescape
from urllib.parse import parse_qs, urlparse

PARTING = frozenset(';@#$%&?!*()[]{}<>«»“”‘’„`"\u2012\u2013\u2014\u2015')
"""Characters that NLTK makes tokens of their own wherever they stand."""
CLOSERS = "])}>\"'»”’ "
_CLITIC = re.compile(r"(?:'(?:[smd]|ll|re|ve)?|n't)(?=[ .]|$)", re.IGNORECASE)
_OPENING_CLITIC = re.compile(r"(?:re|ve|ll|m|t|s|d|n)\b", re.IGNORECASE)


def clean_answer(answer: str) -> str:
    answer = answer.strip()
    for quote in "'\"":
        if answer.startswith(quote) and answer.endswith(quote):
            return answer[1:-1].lower()
    return answer.lower()


def exact_match(reference: str, text: str) -> bool:
    return clean_answer(text) == clean_answer(reference)


def must_include(reference: str, text: str, tokenize: bool = False) -> bool:
    """Whether the text holds the reference; as a token, if `tokenize` and the reference has one character."""
    reference, text = clean_answer(reference), clean_answer(text)
    if tokenize and len(reference) == 1 and not reference.isspace():
        return any(is_token(text, i) for i in range(len(text)) if text[i] == reference)
    return reference in text


def is_token(text: str, at: int) -> bool:
    """Whether NLTK's word_tokenize makes a token of the character at this place."""
    return text[at] in PARTING - set("`") or (_parts_before(text, at) and _parts_after(text, at + 1))


def _parts_before(text: str, at: int) -> bool:
    before = text[at - 1 : at]
    if not before or before.isspace() or before in PARTING or text[:at].endswith(("--", "..", "''")):
        return True
    if before in ":,":
        return not text[at].isdigit()
    opens = before == "'" and not re.match(r"\w", text[at - 2 : at - 1]) and re.match(r"\w", text[at])
    return bool(opens) and not _OPENING_CLITIC.match(text, at)


def _parts_after(text: str, at: int) -> bool:
    after, rest = text[at : at + 1], text[at:]
    if not after or after.isspace() or after in PARTING or rest.startswith(("--", "..", "''")):
        return True
    if after in ":,":
        return not rest[1:2].isdigit()
    if clitic := _CLITIC.match(rest):
        follower = rest[clitic.end() :]
        return not follower or follower[0] == " " or not follower[1:] or follower[1] in CLOSERS
    return after == "." and _ends_sentence(rest[1:])


def _ends_sentence(rest: str) -> bool:
    after = rest.lstrip(CLOSERS)
    if not after.strip():
        return True
    if not rest[0].isspace():
        return rest[0] in CLOSERS
    return not after[0].islower() and after[0] not in ";:,.!?"


def url_match(references: str, url: str) -> bool:
    """WebArena's "GOLD in PRED": a reference's host and path lie within the address; queries are pooled."""
    paths, queries = [], defaultdict(set)
    for reference in references.split(" |OR| "):
        path, query = _split_url(reference.rstrip("/"))
        paths.append(path)
        for key, values in query.items():
            queries[key].update(values)
    found, query = _split_url(url.rstrip("/"))
    return any(p in found for p in paths) and all(values & set(query.get(key, [])) for key, values in queries.items())


def _split_url(url: str) -> tuple[str, dict[str, list[str]]]:
    parsed = urlparse(url)
    return parsed.netloc + parsed.path, parse_qs(parsed.query)


def string_match(references: dict, answer: str, judge: Callable[[str, str], bool], note: str) -> bool:
    """An answer against `reference_answers`; `judge(about, reference)` says what a judge makes of the answer."""
    answer, score = clean_answer(answer), True
    for approach, value in references.items():
        if approach == "exact_match":
            score = score and exact_match(value, answer)
        elif approach == "must_include":
            score = score and all(must_include(v, answer, tokenize=len(value) == 1) for v in value)
        elif approach == "fuzzy_match" and value == "N/A":
            score = score and exact_match(value, answer)
            score = score or judge("reason", note)
        elif approach == "fuzzy_match":
            score = score and all([judge("answer", reference) for reference in value])
    return score


def contents_hold(required: dict, found: object) -> bool | None:
    """What a locator found against `required_contents`; None where WebArena knows no such requirement."""
    text = unescape(str(found))
    if "exact_match" in required:
        return exact_match(required["exact_match"], text)
    if "must_include" in required:
        return all(any(must_include(r, text) for r in part.split(" |OR| ")) for part in required["must_include"])
    return None


def says_correct(reply: str) -> bool | None:
    """The original's reading of a verdict on an answer; None where it stops with an AssertionError."""
    reply = reply.lower()
    if "partially correct" in reply or "incorrect" in reply:
        return False
    return True if "correct" in reply else None


def says_same(reply: str) -> bool | None:
    """The original's reading of a verdict on a reason; None where it stops with an AssertionError."""
    reply = reply.lower()
    if "different" in reply:
        return False
    return True if "same" in reply else None
