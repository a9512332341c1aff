"""WebArena's own evaluators, reproduced: cases frozen from a comparison with the original functions and with NLTK."""

import pytest
from lxml import html

from dynaweb_lite.answer_judge import Question
from dynaweb_lite.evaluators import evaluate
from dynaweb_lite.html_page import Page
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.strict_evaluators import (
    clean_answer,
    contents_hold,
    exact_match,
    must_include,
    says_correct,
    says_same,
    url_match,
)
from dynaweb_lite.tasks import Task

PAGE = """<body><h1>My Cart</h1><script>var hidden = "in a script"</script><p title="a &amp; b">one</p>
<p>two <b>three</b></p><input name="q" value="7"></body>"""


def page(url="http://shop.test/cart"):
    return Page(url, html.document_fromstring(PAGE))


def score(types, answer="", last=None, judge=None, **checks):
    task = Task(1, ("shopping",), "__SHOPPING__", "How much?", {"eval_types": types, **checks})
    return evaluate(task, answer, last or page(), page, judge, strict="webarena")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (" 'Red  Mug' ", "red  mug"),
        ('"Red"', "red"),
        ("'Red\"", "'red\""),
        ("'", ""),
        ("''Red''", "'red'"),
        ("\" x '", "\" x '"),
    ],
)
def test_clean_answer(text, cleaned):
    assert clean_answer(text) == cleaned


@pytest.mark.parametrize(
    ("reference", "text", "equal"),
    [
        ("$0.00", "0", False),
        ("Canceled", "cancelled", False),
        ("Red mug", "red  mug", False),
        ("yes |OR| sure", "sure", False),
        ("1,200", "1200", False),
        ("20", "20.0000", False),
        ("Red Mug", " 'red mug' ", True),
    ],
)
def test_exact_match(reference, text, equal):
    assert exact_match(reference, text) is equal


@pytest.mark.parametrize(
    ("reference", "text", "held"),
    [
        ("12", "120", True),
        ("65 |OR| 3", "65", False),
        ("65 |OR| 3", "it says 65 |or| 3", True),
        ("Lo", "following", True),
        ("", "anything", True),
        ("148", "000000148", True),
    ],
)
def test_must_include_is_a_substring(reference, text, held):
    assert must_include(reference, text) is held


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "$5",
        "5.",
        "there are 5 reviews.",
        "(5)",
        "5%",
        "#5",
        "5, 6",
        "a:b; 5: x",
        "5!",
        "5?",
        "5...",
        '"5"',
        "“5”",
        "'5'",
        "5's",
        "5 . x",
        "5. 3 items",
        "5. (or so)",
        "5.)",
        "x — 5—y",
        "[5]",
        "*5*",
        "a--5--b",
        "5'. next",
        "5.\n\n6. x",
    ],
)
def test_one_character_is_found_among_tokens(text):
    assert must_include("5", text, tokenize=True)


@pytest.mark.parametrize(
    "text",
    [
        "15",
        "5.0",
        "$5.00",
        "5,000",
        "1,5",
        ",5",
        ".5",
        "5-star",
        "5/10",
        "5th",
        "x5",
        "-5",
        "5x",
        "5_",
        "the answer is 5. thanks",
        "5., x",
        "2005",
        "5=6",
        "",
        ":5",
        "5+5",
    ],
)
def test_one_character_is_not_found_inside_a_token(text):
    assert not must_include("5", text, tokenize=True) and must_include("5", f"{text}5")


def test_only_a_lone_reference_of_one_character_is_a_token():
    assert must_include("a", "banana") and not must_include("a", "banana", tokenize=True)
    assert must_include("an", "banana", tokenize=True)
    assert must_include("a", "an't", tokenize=True) and not must_include("a", "can't", tokenize=True)
    answers = {"must_include": ["0"]}
    assert score(["string_match"], "$0.00", reference_answers=answers) == 0
    assert score(["string_match"], "10", reference_answers=answers) == 0
    assert score(["string_match"], "0.", reference_answers=answers) == 1
    assert score(["string_match"], "10 to 20", reference_answers={"must_include": ["0", "2"]}) == 1


@pytest.mark.parametrize(
    ("reference", "url", "matched"),
    [
        ("http://h.test/a", "http://h.test/ab", True),
        ("http://h.test/mr/450", "http://h.test/mr/4500", True),
        ("http://h.test/a/", "http://h.test/a", True),
        ("http://h.test/a/?q=1", "http://h.test/a?q=1", False),
        ("http://H.test/a", "http://h.test/a", False),
        ("http://h.test/a b", "http://h.test/a%20b", False),
        ("http://h.test/a?q=1 |OR| http://h.test/b?q=2", "http://h.test/a?q=2", True),
        ("http://h.test/a?q=1&q=2", "http://h.test/a?q=2", True),
        ("http://h.test/a?q=1 |OR| http://h.test/b?r=2", "http://h.test/a?q=1", False),
        ("http://h.test/a?q=", "http://h.test/a", True),
        ("http://h.test/a?q=x+y", "http://h.test/a?q=x%20y&p=2", True),
        ("http://h.test/a?q=%20x", "http://h.test/a?q=x", False),
        ("h.test/a", "http://h.test/a", True),
        ("", "http://h.test/a", True),
    ],
)
def test_url_match(reference, url, matched):
    assert url_match(reference, url) is matched


def test_placeholders_become_addresses_before_urls_are_compared():
    last = page("http://shop.test/cartoon")
    assert score(["url_match"], last=last, reference_url="__SHOPPING__/cart") == 1
    assert score(["url_match"], last=last, reference_url="__REDDIT__/cart") == 0


@pytest.mark.parametrize(
    ("required", "found", "held"),
    [
        ({"exact_match": "20"}, 20, True),
        ({"exact_match": "None"}, None, True),
        ({"exact_match": "true"}, True, True),  # Python's "True", in small letters
        ({"must_include": ["a & b"]}, "A &amp; B", True),
        ({"must_include": ["x |OR| y", "z"]}, "y z", True),
        ({"must_include": ["x |OR| y", "z"]}, "y", False),
        ({"must_include": []}, "", True),
        ({"exact_match": "a", "must_include": ["b"]}, "a", True),
        ({"sound": "x"}, "x", None),
    ],
)
def test_contents(required, found, held):
    assert contents_hold(required, found) is held


def target(locator="", **required):
    return {"url": "last", "locator": locator, "required_contents": required}


def test_a_whole_page_is_its_html():
    def holds(*parts):
        return score(["program_html"], program_html=[target(must_include=list(parts))])

    assert holds("in a script") == holds('title="a & b"') == holds("</b></p>") == holds("My Cart") == 1
    assert holds("two three") == 0


def test_what_a_locator_finds_is_python_text():
    def found(locator, text):
        return score(["program_html"], program_html=[target(locator, exact_match=text)])

    assert found("document.querySelector('h1').value", "None") == 1
    assert found("document.querySelector('input').checked", "False") == 1
    assert found("document.querySelector('.nowhere').value", "") == 1
    assert found("document.querySelector('input').value", "7.0") == 0


def test_a_forum_address_that_is_no_post_is_opened_as_it_is():
    opened = []
    checks = [
        {"url": "func:reddit_get_post_url('__last_url__')", "locator": "", "required_contents": {"must_include": []}}
    ]
    task = Task(1, ("reddit",), "__REDDIT__", "Post", {"eval_types": ["program_html"], "program_html": checks})
    for url in ("http://forum.test/f/a/1/t/-/comment/2", "http://forum.test/f/a/edit", "http://forum.test/f/a"):
        assert evaluate(task, "", page(url), lambda u: opened.append(u) or page(u), strict="webarena") == 1
    assert opened == ["http://forum.test/f/a/1/", "http://forum.test/f/a/edit/", "http://forum.test/f/a"]


class Asked:
    def __init__(self, *verdicts):
        self.verdicts, self.questions = list(verdicts), []

    def __call__(self, question):
        self.questions.append(question)
        return self.verdicts.pop(0)


def test_the_judge_is_asked_reference_by_reference_with_the_cleaned_answer():
    judge = Asked(True, False)
    answers = {"fuzzy_match": ["170: cancelled", "189: pending"]}
    assert score(["string_match"], " 'Both' ", judge=judge, reference_answers=answers) == 0
    assert judge.questions == [
        Question("How much?", part, "both", "answer", strict=True) for part in answers["fuzzy_match"]
    ]


def test_an_accepted_reason_outweighs_parts_that_failed():
    answers = {"must_include": ["x"], "fuzzy_match": "N/A"}
    checks = {"reference_answers": answers, "string_note": "sold out"}
    assert score(["string_match"], "it is gone", judge=Asked(True), **checks) == 1
    assert score(["string_match"], "it is gone", judge=Asked(False), **checks) == 0
    judge = Asked()
    assert score(["string_match"], "N/A", judge=judge, reference_answers={"fuzzy_match": "N/A"}) == 1


def test_verdicts_are_substrings():
    assert says_correct("The answer is CORRECT") is True and says_correct("That is not incorrect: correct") is False
    assert says_correct("Partially correct.") is False and says_correct("Yes") is None
    assert says_same("The same") is True and says_same("same, no different") is False and says_same("yes") is None


def test_nothing_asked_for_is_success_and_no_references_at_all_stop_it():
    assert score(["string_match"], "anything", reference_answers={}) == 1
    with pytest.raises(NotScorable, match="stops here"):
        score(["string_match"], "anything", reference_answers=None)
