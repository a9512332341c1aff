"""WebArena's evaluators: string_match, url_match and program_html, without eval() and without a judge by default.

The score of a task is the product of its parts. There are two evaluators: the default, "right", and "webarena"
(`strict="webarena"`), which reproduces WebArena's own to the letter (strict_evaluators.py). Where they differ:

    part            WebArena                                       right
    numbers         "12" is in "120"; "0" is not in "$0.00"        whole numbers, equal as amounts; $ and , do not count
    codes           "148" is in "000000148", "06516" in "106516"   the first is, the second is not
    short words     "Lo" is in "following"                         up to two letters: whole words
    spelling        "Canceled" is not "cancelled"                  equal
    white space     counts                                         any amount is one space
    |OR|            in program_html's must_include only            in every reference of an answer or content too
    references      {} is success                                  failure: nothing was asked for
    paths           "/a" matches "/ab", "/ba", "/a/b", "/450"…     equal; "/a/b" only where program_html reads the
                    matches "/4500"                                last page too, as after posting into a forum
    /, %20, case    the final slash, the spelling of a path        do not count; nor does Magento's secret /key/…
                    and the case of a host count
    queries         values of all references pooled, blanks        each reference on its own, with all its values;
                    around words count                             blanks around words do not count
    whole page      its HTML, scripts and hidden parts too         its visible text
    missing values  read as "None"; True as "True"                 read as nothing; as "true"
    forum post      an address of another kind is opened as it is  fails
    fuzzy_match     each reference judged alone; the verdict is    all references in one question; the verdict is the
                    any "correct" in the reply; an accepted        word on the last line; every part counts
                    reason outweighs the other parts

So "right" accepts what WebArena rejects only for amounts, spelling, white space, |OR|, slashes, keys and blanks, and
for text that markup parts. Reading JavaScript locators: locators.py; comparing texts: text_match.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from dynaweb_lite import strict_evaluators
from dynaweb_lite.answer_judge import Judge, Question, configured_judge
from dynaweb_lite.evaluator_functions import Scene, call, check_function
from dynaweb_lite.locators import PREPARING, parse_call, parse_locator, spelled
from dynaweb_lite.observation import one_line
from dynaweb_lite.page_reader import NotScorable, PageReader
from dynaweb_lite.tasks import SITE_TOKENS, Task, TaskError, base_url, site_urls
from dynaweb_lite.text_match import alternatives, exact_match, must_include

STRICT_MODES = ("", "webarena")
GOLD = "GOLD in PRED"
"""The only rule for addresses that WebArena knows, as its files spell it."""
PARTS = ("string_match", "url_match", "program_html")
_MAGENTO_KEY = re.compile(r"/key(?:/[0-9a-f]{16,})?(?=/|$)")


@dataclass(frozen=True)
class Evaluator:
    """How a world scores its tasks. `judge`: for fuzzy_match; None is the one that the environment names, if any.

    Raises ValueError for an unknown `strict`, TaskError for a judge that is half configured.
    """

    strict: str = ""
    judge: Judge | None = None

    def __post_init__(self) -> None:
        if self.strict not in STRICT_MODES:
            raise ValueError(f"strict={self.strict!r}: there are {', '.join(map(repr, STRICT_MODES))}")
        object.__setattr__(self, "judge", self.judge or configured_judge())

    @property
    def name(self) -> str:
        """What score tables call it: "right" or "webarena"."""
        return self.strict or "right"

    def why_not(self, task: Task) -> str:
        """Why a task cannot be scored, whatever an agent does; empty when it can be."""
        return why_not_scorable(task, self.judge)

    def score(self, task: Task, answer: str, last_page: PageReader, open_page: Callable[[str], PageReader]) -> float:
        """See `evaluate`."""
        return evaluate(task, answer, last_page, open_page, self.judge, self.strict)


def evaluate(
    task: Task,
    answer: str,
    last_page: PageReader,
    open_page: Callable[[str], PageReader],
    judge: Judge | None = None,
    strict: str = "",
) -> float:
    """Score of an episode in {0, 1}: the product of the parts in `task.eval["eval_types"]`.

    Raises NotScorable for an unknown part, locator or function, for fuzzy_match without a `judge`, and when the judge
    or a site's interface does not answer.
    """
    if why := why_not_scorable(task, judge):
        raise NotScorable(why)
    is_strict, score = strict == "webarena", 1.0
    checks = filled(task.eval)
    for kind in checks["eval_types"]:
        if kind == "string_match":
            score *= _string_match(task, checks, answer, judge, is_strict)
        elif kind == "url_match" and is_strict:
            if (rule := checks.get("url_note", GOLD)) != GOLD:
                raise NotScorable(f"task {task.task_id}: WebArena does not know the url_note {rule!r}")
            score *= strict_evaluators.url_match(checks["reference_url"], last_page.url)
        elif kind == "url_match":
            score *= url_match(checks["reference_url"], last_page.url, within=_reads_last_page(checks))
        else:
            scene = Scene(last_page.url, last_page, open_page, is_strict)
            score *= all([_target_holds(target, scene, task, judge) for target in checks["program_html"]])
    return float(score)


def why_not_scorable(task: Task, judge: Judge | None = None) -> str:
    """Why a task cannot be scored here, whatever an agent does; empty when it can be."""
    kinds, targets = task.eval.get("eval_types") or [], task.eval.get("program_html") or []
    if unknown := [kind for kind in kinds if kind not in PARTS]:
        return f"task {task.task_id}: no evaluator for {unknown[0]!r}"
    approaches = (task.eval.get("reference_answers") or {}) if "string_match" in kinds else {}
    if unknown := [a for a in approaches if a not in ("exact_match", "must_include", "fuzzy_match")]:
        return f"task {task.task_id}: unknown reference_answers.{unknown[0]}"
    targets = targets if "program_html" in kinds else []
    if judge is None and ("fuzzy_match" in approaches or any("fuzzy_match" in t["required_contents"] for t in targets)):
        return f"task {task.task_id} needs a judge for fuzzy_match: set DYNAWEB_JUDGE_URL and DYNAWEB_JUDGE_MODEL"
    try:
        for target in targets:
            _check_target(target)
    except NotScorable as error:
        return f"task {task.task_id}: {error}"
    return ""


def _check_target(target: dict) -> None:
    """Raise NotScorable where an entry of `program_html` is not understood."""
    for text in (target["url"], target["locator"]):
        if called := parse_call(text):
            check_function(*called)
    if target["locator"].strip() and not parse_call(target["locator"]):
        parse_locator(target["locator"])
    for action in target.get("prep_actions", ()):
        parse_locator(action, PREPARING)
    if not set(target["required_contents"]) & {"exact_match", "must_include", "fuzzy_match"}:
        raise NotScorable(f"unknown required_contents: {', '.join(target['required_contents'])}")


def filled(checks: object) -> object:
    """An `eval` block with the sites' addresses in place of WebArena's placeholders, as BrowserGym fills them in."""
    if isinstance(checks, dict):
        return {key: filled(value) for key, value in checks.items()}
    if isinstance(checks, list):
        return [filled(value) for value in checks]
    if not isinstance(checks, str) or "__" not in checks:
        return checks
    try:
        return re.sub("|".join(SITE_TOKENS), lambda m: base_url(SITE_TOKENS[m[0]], site_urls()), checks)
    except TaskError as error:
        raise NotScorable(str(error)) from error


def _string_match(task: Task, checks: dict, answer: str, judge: Judge | None, is_strict: bool) -> bool:
    """Compare an answer with `reference_answers`: every approach that the task names must agree."""
    references, note = checks["reference_answers"], checks.get("string_note") or ""
    if is_strict:
        return _strict_string_match(task, references, answer, judge, note)
    for approach, reference in sorted((references or {}).items(), key=lambda pair: pair[0] == "fuzzy_match"):
        if approach == "fuzzy_match":
            held = fuzzy_match(task.intent, reference, answer, note, judge)
        elif approach == "must_include":
            held = all(must_include(part, answer) for part in reference)
        else:
            held = exact_match(reference, answer)
        if not held:
            return False
    return bool(references)


def _strict_string_match(task: Task, references: dict | None, answer: str, judge: Judge | None, note: str) -> bool:
    if references is None:
        raise NotScorable(f"task {task.task_id} has no reference_answers: WebArena's own evaluator stops here")

    def asked(about: str, reference: str) -> bool:
        given = strict_evaluators.clean_answer(answer)
        return judge(Question(task.intent, reference, given, about, strict=True))

    return strict_evaluators.string_match(references, answer, asked, note)


def fuzzy_match(intent: str, reference: str | list[str], answer: str, note: str, judge: Judge) -> bool:
    """Whether an answer means its references, or, where they are "N/A", gives the reason in `note`.

    An answer that equals the reference is right and an empty one wrong, without asking.
    """
    parts = [reference] if isinstance(reference, str) else reference
    if all(exact_match(part, answer) for part in parts) or not one_line(answer):
        return bool(one_line(answer))
    if parts == ["N/A"]:
        return bool(note) and judge(Question(intent, note, answer, "reason"))
    return judge(Question(intent, "; ".join(parts), answer))


def _reads_last_page(checks: dict) -> bool:
    """Whether `program_html` looks at the page that the agent ends on."""
    targets = checks["program_html"] if "program_html" in checks["eval_types"] else ()
    return any(target["url"] == "last" or "__last_url__" in target["url"] for target in targets)


def url_match(references: str, url: str, within: bool = False) -> bool:
    """Whether a URL is one of the references (` |OR| ` between them): same host, path and the reference's query.

    With `within`, it may lie below the reference, as a new post lies below its forum.
    """
    return any(_same_page(str(filled(reference)), url, within) for reference in alternatives(references))


def _same_page(reference: str, url: str, within: bool) -> bool:
    (base, wanted), (found, query) = _split_url(reference), _split_url(url)
    if base != found and not (within and found.startswith(base + "/")):
        return False
    return all(set(values) <= set(query.get(key, ())) for key, values in wanted.items())


def _split_url(url: str) -> tuple[str, dict[str, list[str]]]:
    split = urlsplit(url.strip())
    path = _MAGENTO_KEY.sub("", unquote(split.path)).rstrip("/")
    query = parse_qs(split.query, keep_blank_values=True)
    return split.netloc.lower() + path, {key: [one_line(v) for v in values] for key, values in query.items()}


def _target_holds(target: dict, scene: Scene, task: Task, judge: Judge | None) -> bool:
    """Whether one entry of `program_html` holds: its page, its locator, its required contents."""
    called, url = parse_call(target["url"]), target["url"]
    if called and not (url := call(scene, *called)):
        return False
    page = scene.page if url == "last" else scene.open_page(url)
    scene = Scene(scene.last_url, page, scene.open_page, scene.strict)
    _prepare(page, target.get("prep_actions", ()))
    required = target["required_contents"]
    if scene.strict:
        if (held := strict_evaluators.contents_hold(required, _found(scene, target["locator"]))) is None:
            raise NotScorable(f"WebArena does not know required_contents: {', '.join(required)}")
        return held
    text = _as_text(_found(scene, target["locator"]))
    if "exact_match" in required:
        return exact_match(required["exact_match"], text)
    if "must_include" in required:
        return all(must_include(part, text) for part in required["must_include"])
    return fuzzy_match(task.intent, required["fuzzy_match"], text, "", judge)


def _prepare(page: PageReader, actions: list[str]) -> None:
    """Do the `prep_actions` up to the first that the page lacks, as WebArena does."""
    try:
        for action in actions:
            page.prepare(parse_locator(action, PREPARING))
    except LookupError:
        return


def _found(scene: Scene, locator: str) -> object:
    """What a locator finds: the whole page for an empty one, an empty string where the page lacks it."""
    if not locator.strip():
        return scene.page.content() if scene.strict else scene.page.text()
    try:
        called = parse_call(locator)
        return call(scene, *called) if called else scene.page.locate(parse_locator(locator))
    except LookupError:
        return ""


def _as_text(found: object) -> str:
    return "" if found is None else spelled(found)


def locate(page: PageReader, locator: str) -> str:
    """The text that a locator of `program_html` points at, empty where the page has none.

    Raises NotScorable for one that is not understood.
    """
    return _as_text(_found(Scene(page.url, page, lambda _: page), locator))
