"""WebArena's evaluators: string_match, url_match and program_html, without eval() and without a judge by default.

The score of a task is the product of its parts. Locators of `program_html` are JavaScript in WebArena's files; the
forms that occur there are read and answered by a CSS selector, and nothing from a task file is ever executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from dynaweb_lite.observation import one_line
from dynaweb_lite.tasks import SITE_TOKENS, Task, resolve_url

Judge = Callable[[str, str, str], bool]
"""Says whether an answer means the same as a reference: (intent, reference, answer) -> bool."""


class NotScorable(ValueError):
    """The task asks for something that this evaluator does not have; the message says what to pass."""


class PageReader(Protocol):
    """A loaded page, with or without a browser."""

    url: str

    def text(self, css: str | None = None, index: int = 0) -> str | None:
        """Visible text of the page, or of the index-th element that fits a selector; None if there is none."""
        ...

    def value(self, css: str, index: int = 0) -> str | None:
        """What stands in a form control; None if there is none."""
        ...


def reddit_post_url(last_url: str) -> str:
    """The URL of the post that a forum URL belongs to (WebArena's reddit_get_post_url), or an empty string."""
    split = urlsplit(last_url)
    parts = split.path.strip("/").split("/")
    is_post = len(parts) >= 3 and parts[0] == "f" and parts[2].isdigit()
    return f"{split.scheme}://{split.netloc}/f/{parts[1]}/{parts[2]}/" if is_post else ""


FUNCTIONS: dict[str, Callable[[str], str]] = {"reddit_get_post_url": reddit_post_url}
"""What `func:name(…)` in a task's URL may call: (URL of the last page) -> URL."""


def evaluate(
    task: Task,
    answer: str,
    last_page: PageReader,
    open_page: Callable[[str], PageReader],
    judge: Judge | None = None,
    functions: Mapping[str, Callable[[str], str]] = FUNCTIONS,
) -> float:
    """Score of an episode in {0, 1}: the product of the parts in `task.eval["eval_types"]`.

    Raises NotScorable for an unknown part, locator or function, and for fuzzy_match without a `judge`.
    """
    score = 1.0
    for kind in task.eval["eval_types"]:
        if kind == "string_match":
            score *= string_match(task, answer, judge)
        elif kind == "url_match":
            score *= url_match(task.eval["reference_url"], last_page.url)
        elif kind == "program_html":
            score *= all(_target_holds(t, last_page, open_page, functions) for t in task.eval["program_html"])
        else:
            raise NotScorable(f"task {task.task_id}: no evaluator for {kind!r}")
    return float(score)


def clean_answer(text: str) -> str:
    """WebArena's clean_answer: outer quotes and capitals do not count; nor, here, does white space."""
    text = one_line(str(text))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return text.lower()


def string_match(task: Task, answer: str, judge: Judge | None = None) -> float:
    """Compare an answer with `reference_answers`: every approach that the task names must agree."""
    references = task.eval["reference_answers"] or {}
    score = 1.0
    for approach, reference in references.items():
        if approach == "exact_match":
            score *= exact_match(reference, answer)
        elif approach == "must_include":
            score *= all(must_include(part, answer) for part in reference)
        elif approach == "fuzzy_match":
            score *= _fuzzy_match(task, reference, answer, judge)
        else:
            raise NotScorable(f"task {task.task_id}: unknown reference_answers.{approach}")
    return float(bool(references) and score)


def exact_match(reference: str, answer: str) -> bool:
    """Equal after cleaning; amounts are equal as numbers ("$0.00" and "0"). ` |OR| ` parts alternatives."""
    return any(_same(r, answer) for r in _alternatives(reference))


def _same(reference: str, answer: str) -> bool:
    left, right = clean_answer(reference), clean_answer(answer)
    return left == right or (_amount(left) is not None and _amount(left) == _amount(right))


def must_include(reference: str, text: str) -> bool:
    """Whether a text holds the reference; a number does not count inside a longer number, nor a lone word in a word."""
    return any(_includes(r, clean_answer(text)) for r in _alternatives(reference))


def _includes(reference: str, text: str) -> bool:
    wanted = clean_answer(reference)
    amount = _amount(wanted)
    if amount is not None:
        return any(_amount(found) == amount for found in _NUMBER.findall(text))
    head, tail = r"(?<![\d.,])" if wanted[:1].isdigit() else "", r"(?![.,]?\d)" if wanted[-1:].isdigit() else ""
    if len(wanted) == 1 and wanted.isalpha():
        head, tail = r"\b", r"\b"
    return re.search(head + re.escape(wanted) + tail, text) is not None


_NUMBER = re.compile(r"(?<![\d.])-?\$?\d[\d,]*(?:\.\d+)?(?!\d)")


def _amount(text: str) -> float | None:
    """The number that a text is, with or without a dollar sign and thousands separators, else None."""
    match = re.fullmatch(r"(-?)\$?(-?\d+|\d{1,3}(?:,\d{3})+)(\.\d+)?", text.strip().rstrip(","))
    return float(match[1] + match[2].replace(",", "") + (match[3] or "")) if match else None


def _alternatives(reference: str) -> list[str]:
    return str(reference).split(" |OR| ")


def _fuzzy_match(task: Task, reference: str | list[str], answer: str, judge: Judge | None) -> bool:
    parts = [reference] if isinstance(reference, str) else reference
    if all(_same(part, answer) for part in parts):
        return True
    if judge is None:
        raise NotScorable(f"task {task.task_id} needs a judge for fuzzy_match: pass judge=(intent, reference, answer)")
    return all(judge(task.intent, part, answer) for part in parts)


def url_match(reference: str, url: str) -> float:
    """Whether a URL is one of the references: the same host and path, and the reference's query among its own."""
    return float(any(_same_page(resolve_url(r), url) for r in _alternatives(reference)))


def _same_page(reference: str, url: str) -> bool:
    (base, wanted), (found, query) = _split_url(reference), _split_url(url)
    return base == found and all(set(values) <= set(query.get(key, ())) for key, values in wanted.items())


def _split_url(url: str) -> tuple[str, dict[str, list[str]]]:
    split = urlsplit(url.strip())
    return split.netloc.lower() + unquote(split.path).rstrip("/"), parse_qs(split.query, keep_blank_values=True)


def _target_holds(
    target: dict,
    last_page: PageReader,
    open_page: Callable[[str], PageReader],
    functions: Mapping[str, Callable[[str], str]],
) -> bool:
    """Whether one entry of `program_html` holds: its page, its locator, its required contents."""
    url = _target_url(target["url"], last_page.url, functions)
    if not url:
        return False
    text = locate(last_page if url == "last" else open_page(url), target["locator"])
    required = target["required_contents"]
    if "exact_match" in required:
        return exact_match(required["exact_match"], text)
    if "must_include" in required:
        return all(must_include(part, text) for part in required["must_include"])
    raise NotScorable(f"unknown required_contents: {', '.join(required)}")


def _target_url(url: str, last_url: str, functions: Mapping[str, Callable[[str], str]]) -> str:
    if match := re.fullmatch(r"func:\s*(\w+)\(.*\)", url):
        if match[1] not in functions:
            raise NotScorable(f"no function {match[1]!r}: pass functions={{{match[1]!r}: …}}")
        return functions[match[1]](last_url)
    for token in SITE_TOKENS:
        url = url.replace(token, resolve_url(token).rstrip("/"))
    return url


_ONE = re.compile(r"""document\.querySelector\((['"`])(.*)\1\)\??\.(outerText|innerText|textContent|value)""")
_NTH = re.compile(
    r"""document\.querySelectorAll\((['"`])(.*)\1\)\[(-?\d+)\]\??\.(outerText|innerText|textContent|value)"""
)
_FUNCTION = re.compile(r"""func:get_query_text\(__page__,\s*(['"])(.*)\1\)""")


def locate(page: PageReader, locator: str) -> str:
    """The text that a locator of `program_html` points at, empty where the page has none.

    Raises NotScorable for JavaScript of another form.
    """
    locator = locator.strip().removeprefix("() =>").strip().rstrip(";")
    if not locator:
        return page.text() or ""
    if match := _FUNCTION.fullmatch(locator):
        return page.text(match[2]) or ""
    if match := _ONE.fullmatch(locator):
        css, index, what = match[2], 0, match[3]
    elif match := _NTH.fullmatch(locator):
        css, index, what = match[2], int(match[3]), match[4]
    else:
        raise NotScorable(f"cannot read the locator {locator!r}; it is no document.querySelector('…').outerText")
    css = css.replace("\\'", "'").replace('\\"', '"')
    return (page.value(css, index) if what == "value" else page.text(css, index)) or ""


def repair_css(css: str) -> str:
    """A selector with the closing bracket that browsers forgive, and some of WebArena's task files leave out."""
    return css + "]" * (css.count("[") - css.count("]"))
