"""Hand-made answers, URLs and pages against WebArena's evaluators."""

import pytest
from lxml import html

from dynaweb_lite.answer_judge import Question
from dynaweb_lite.evaluators import Evaluator, evaluate, filled, locate, url_match, why_not_scorable
from dynaweb_lite.html_page import Page
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.tasks import Task
from dynaweb_lite.text_match import exact_match, must_include

PAGE = """<body><h1>My Cart</h1><div class="total">Total: <b>$12.50</b></div><p>a</p><p>b</p>
<form><input name="product[qty]" value="3"><select id="s"><option value="n">Name</option>
<option value="p" selected>Price</option></select><textarea>Hi there</textarea></form></body>"""


def page(url="http://shop.test/cart"):
    return Page(url, html.document_fromstring(PAGE))


def task(types, **rest):
    return Task(1, ("shopping",), "__SHOPPING__", "How much?", {"eval_types": types, **rest})


def score(types, answer="", last=None, open_page=None, judge=None, strict="", **rest):
    return evaluate(task(types, **rest), answer, last or page(), open_page or (lambda url: page(url)), judge, strict)


@pytest.mark.parametrize(
    ("reference", "answer", "equal"),
    [
        ("$0.00", "0", True),
        ("$1,200.50", "1200.5", True),
        ("12", "120", False),
        ("Red Mug", " 'red  mug' ", True),
        ("Red Mug", "Red Mugs", False),
        ("yes |OR| sure", "Sure", True),
        ("yes |OR| sure", "surely", False),
        ("N/A", "", False),
        ("40%", "40", False),
        ("canceled", "Cancelled", True),
        ("Canceled", "Canceling", False),
        ("06516", "6516", False),
        ("15213", "15213", True),
        ("0.50", "$.50", False),
        ("-3", "-3.0", True),
        ("98765432109876543210", "98765432109876543211", False),
        ("", "", True),
    ],
)
def test_exact_match(reference, answer, equal):
    assert exact_match(reference, answer) is equal


@pytest.mark.parametrize(
    ("reference", "text", "held"),
    [
        ("12", "There are 12.", True),
        ("12", "There are 120", False),
        ("12", "version 3.12", False),
        ("$0.00", "It costs $0", True),
        ("5", "$1,005", False),
        ("1005", "it is $1,005.00, he said", True),
        ("2.5", "12.5", False),
        ("3 km", "13 km", False),
        ("red mug", "The Red Mug!", True),
        ("blue |OR| red", "a red one", True),
        ("blue |OR| green", "a red one", False),
        ("A", "banana", False),
        ("Lo", "The following: Chen, Chu", False),
        ("Lo", "Chen, Chu, Lo", True),
        ("noise cancelling", "Noise-free; Noise Canceling", True),
        ("170", "order #000000170", True),
        ("000000170", "order 170", False),
        ("000000170", "order #000000170.", True),
        ("06516", "CT 106516", False),
        ("0", "$0.00", True),
        ("0", "10", False),
        ("0", "0.5", False),
        ("3", "3.1 stars", False),
        ("3", "3. The next", True),
        ("12", "2023-06-12", True),
        ("5", "it is -5", False),
        ("16", "16GB", True),
        ("450", "issue 4500", False),
        ("4 stars", "14 stars", False),
        ("top 10", "top 100", False),
        ("item 1.5", "item 1.52", False),
        ("tracking 12", "tracking  12, DHL", True),
    ],
)
def test_must_include(reference, text, held):
    assert must_include(reference, text) is held


def test_an_answer_must_satisfy_every_approach_and_every_part():
    answers = {"must_include": ["12.50", "dollars"]}
    assert score(["string_match"], "12.50 dollars", reference_answers=answers) == 1
    assert score(["string_match"], "12.50", reference_answers=answers) == 0
    both = answers | {"exact_match": "12.50 dollars"}
    assert score(["string_match"], "12.50 dollars or so", reference_answers=both) == 0
    assert score(["string_match"], "anything", reference_answers={}) == 0


def test_fuzzy_match_needs_a_judge_whatever_the_answer():
    """Were right answers scored without a judge and others left out, the rate over the rest would flatter."""
    answers = {"fuzzy_match": ["at noon"]}
    for answer in ("At noon", "12 o'clock", ""):
        with pytest.raises(NotScorable, match="DYNAWEB_JUDGE_URL"):
            score(["string_match"], answer, reference_answers=answers)
    assert score(["string_match"], "12 o'clock", reference_answers=answers, judge=lambda _: True) == 1
    assert score(["string_match"], "12 o'clock", reference_answers=answers, judge=lambda _: False) == 0


class Asked:
    """A judge that says what it is told to, and keeps what it was asked."""

    def __init__(self, verdict):
        self.verdict, self.questions = verdict, []

    def __call__(self, question):
        self.questions.append(question)
        return self.verdict


def test_the_judge_gets_one_question_with_all_references_and_none_where_it_is_clear():
    judge = Asked(True)
    answers = {"fuzzy_match": ["170: cancelled", "189: pending"]}
    assert score(["string_match"], "170 was cancelled and 189 waits", reference_answers=answers, judge=judge) == 1
    assert judge.questions == [
        Question("How much?", "170: cancelled; 189: pending", "170 was cancelled and 189 waits", "answer")
    ]
    judge = Asked(False)
    assert score(["string_match"], "at NOON", reference_answers={"fuzzy_match": ["At noon"]}, judge=judge) == 1
    assert score(["string_match"], " ", reference_answers={"fuzzy_match": ["At noon"]}, judge=judge) == 0
    both = {"fuzzy_match": ["At noon"], "must_include": ["12"]}
    assert score(["string_match"], "midday", reference_answers=both, judge=judge) == 0
    assert judge.questions == []


def test_a_task_that_cannot_be_done_takes_na_or_the_reason():
    checks = {"reference_answers": {"fuzzy_match": "N/A"}, "string_note": "There is no such product"}
    judge = Asked(True)
    assert score(["string_match"], "n/a", judge=judge, **checks) == 1 and not judge.questions
    assert score(["string_match"], "The shop does not sell it", judge=judge, **checks) == 1
    assert judge.questions == [Question("How much?", "There is no such product", "The shop does not sell it", "reason")]
    assert score(["string_match"], "It costs $3", judge=Asked(False), **checks) == 0
    assert score(["string_match"], "It costs $3", judge=Asked(True), **checks | {"string_note": ""}) == 0


@pytest.mark.parametrize(
    ("reference", "url", "equal"),
    [
        ("__SHOPPING__/mug.html", "http://shop.test/mug.html", True),
        ("__SHOPPING__/mug", "http://shop.test/mug-red", False),
        ("__SHOPPING__/mug.html", "http://forum.test/mug.html", False),
        ("__SHOPPING__", "http://shop.test/", True),
        ("__SHOPPING__/s?q=red+mug", "http://shop.test/s?order=up&q=red%20mug", True),
        ("__SHOPPING__/s?q=red+mug", "http://shop.test/s?q=red", False),
        ("__SHOPPING__/s?q=red+mug", "http://shop.test/s", False),
        ("__SHOPPING__/a |OR| __SHOPPING__/b", "http://shop.test/b/", True),
        ("__SHOPPING__/a |OR| __SHOPPING__/b", "http://shop.test/c", False),
        ("__GITLAB__/a/b/-/merge_requests/450", "http://git.test/a/b/-/merge_requests/4500", False),
        ("__GITLAB__/a/b/-/issues/8", "http://git.test/a/b/-/issues/8#note_1", True),
        ("__GITLAB__/a/b/-/issues/8", "http://git.test/x/a/b/-/issues/8", False),
        ("__GITLAB__/-/issues/?label%5B%5D=help%20wanted", "http://git.test/-/issues?label[]=help+wanted", True),
        ("__SHOPPING__/a?x=1 |OR| __SHOPPING__/b?x=2", "http://shop.test/a?x=2", False),
        ("__SHOPPING__/s?x=1&x=2", "http://shop.test/s?x=2&x=1", True),
        ("__SHOPPING__/s?x=1&x=2", "http://shop.test/s?x=2", False),
        ("__SHOPPING__/s?q=night%20guard%20", "http://shop.test/s?q=night+guard", True),
        ("__SHOPPING__/s?q=", "http://shop.test/s", False),
        ("__SHOPPING__/d%C3%A9j%C3%A0", "http://SHOP.test/déjà", True),
        ("__SHOPPING_ADMIN__/admin/theme/edit/id/3/key/", "http://shop-admin.test/admin/admin/theme/edit/id/3", True),
        (
            "__SHOPPING_ADMIN__/admin/theme/edit/id/1",
            "http://shop-admin.test/admin/admin/theme/edit/id/1/key/5f2b3c4d5e6f7a8b9c0d1e2f/",
            True,
        ),
        ("__SHOPPING_ADMIN__/admin/theme/edit/id/1", "http://shop-admin.test/admin/admin/theme/edit/id/11", False),
        ("__SHOPPING_ADMIN__/reports/viewed", "http://shop-admin.test/admin/reports/viewedasdf", False),
        ("__REDDIT__/f/books", "http://forum.test/f/books/12/a-title", False),
    ],
)
def test_url_match(reference, url, equal):
    assert url_match(reference, url) == equal


@pytest.mark.parametrize(
    ("reference", "url", "within"),
    [
        ("__REDDIT__/f/books", "http://forum.test/f/books/12/a-title", True),
        ("__REDDIT__/f/books", "http://forum.test/f/bookshop/12/a-title", False),
        ("__REDDIT__/f/books", "http://forum.test/f/books", True),
        ("__REDDIT__/f/art |OR| __REDDIT__/f/books", "http://forum.test/f/books/12/a-title", True),
        ("__REDDIT__/f/books?page=2", "http://forum.test/f/books/12", False),
    ],
)
def test_an_address_may_lie_below_the_reference_where_the_page_itself_is_checked(reference, url, within):
    last = page(url)
    for target in ({"url": "last"}, {"url": "func:reddit_get_post_url('__last_url__')"}):
        checks = {"locator": "", "required_contents": {"must_include": ["My Cart"]}} | target
        parts = {"reference_url": reference, "program_html": [checks]}
        is_post = "12" in url or target["url"] == "last"
        assert score(["url_match", "program_html"], last=last, **parts) == (within and is_post)
    elsewhere = checks | {"url": "__SHOPPING__/cart"}
    is_same = url_match(reference, url)
    assert score(["url_match", "program_html"], last=last, reference_url=reference, program_html=[elsewhere]) == is_same


@pytest.mark.parametrize(
    ("locator", "text"),
    [
        ("document.querySelector('.total').outerText", "Total: $12.50"),
        ('document.querySelector("div.total b").innerText', "$12.50"),
        ("document.querySelectorAll('p')[1].textContent", "b"),
        ("document.querySelectorAll('p')[7].textContent;", ""),
        ("() => document.querySelector('.nowhere').outerText", ""),
        ("document.querySelector('[name=\"product[qty]\"').value", "3"),
        ("document.querySelector('#s').value", "p"),
        ("document.querySelector('textarea').value", "Hi there"),
        ("func:get_query_text(__page__, 'h1')", "My Cart"),
        ("", "My Cart\nTotal: $12.50\n\na\n\nb\n\nName\nPrice"),
    ],
)
def test_locators(locator, text):
    assert locate(page(), locator) == text


def test_a_locator_is_never_run():
    for locator in ("alert(1)", "document.querySelector('p').click()", "__import__('os').system('true')"):
        with pytest.raises(NotScorable, match="locator"):
            locate(page(), locator)


def test_program_html_opens_the_page_that_the_task_names():
    opened = []

    def open_page(url):
        opened.append(url)
        return page(url)

    target = {"url": "__SHOPPING__/cart", "locator": "document.querySelector('.total').outerText"}
    ok = target | {"required_contents": {"must_include": ["$12.50", "total"]}}
    wrong = target | {"url": "last", "required_contents": {"exact_match": "Total: $1"}}
    assert score(["program_html"], program_html=[ok], open_page=open_page) == 1
    assert opened == ["http://shop.test/cart"]
    assert score(["program_html"], program_html=[ok, wrong], open_page=open_page) == 0


def test_program_html_calls_only_functions_by_name():
    target = {"locator": "", "required_contents": {"must_include": ["My Cart"]}}
    known = target | {"url": "func:reddit_get_post_url('__last_url__')"}
    post = page("http://forum.test/f/books/12/a-title/-/comment/3")
    opened = []
    assert (
        score(["program_html"], last=post, program_html=[known], open_page=lambda u: opened.append(u) or page(u)) == 1
    )
    assert opened == ["http://forum.test/f/books/12/"]
    assert score(["program_html"], last=page("http://forum.test/f/books"), program_html=[known]) == 0
    for call, said in (("launch()", "no function 'launch'"), ("reddit_get_post_url()", "takes 1 arguments, not 0")):
        with pytest.raises(NotScorable, match=said):
            score(["program_html"], program_html=[target | {"url": f"func:{call}"}])


def test_the_score_is_the_product_of_the_parts():
    parts = {"reference_url": "__SHOPPING__/cart", "reference_answers": {"exact_match": "12.50"}}
    assert score(["string_match", "url_match"], "$12.5", **parts) == 1
    assert score(["string_match", "url_match"], "13", **parts) == 0
    assert score(["string_match", "url_match"], "12.50", last=page("http://shop.test/"), **parts) == 0
    with pytest.raises(NotScorable, match="no evaluator"):
        score(["guess"])


def test_placeholders_are_filled_in_everywhere(monkeypatch):
    checks = {"must_include": ["see __REDDIT__/f/a and __GITLAB__/b", "__HOMEPAGE__", "plain"], "n": 1, "none": None}
    assert filled(checks) == {
        "must_include": ["see http://forum.test/f/a and http://git.test/b", "http://home.test", "plain"],
        "n": 1,
        "none": None,
    }
    listed = page()
    listed.document.find(".//p").text = "http://forum.test/f/a/1/x"
    target = {"url": "last", "locator": "", "required_contents": {"must_include": ["__REDDIT__/f/a/1/x"]}}
    for strict in ("", "webarena"):
        assert score(["program_html"], last=listed, program_html=[target], strict=strict) == 1
    assert score(["string_match"], "http://git.test/x", reference_answers={"exact_match": "__GITLAB__/x"}) == 1
    monkeypatch.setenv("WA_SHOPPING", "http://localhost:7770")
    with pytest.raises(NotScorable, match="set WA_REDDIT"):
        score(["program_html"], program_html=[target])


def test_contents_may_ask_the_judge_as_webarena_lite_does():
    target = {"url": "last", "locator": "document.querySelector('h1').outerText"}
    target |= {"required_contents": {"fuzzy_match": ["a cart", "mine"]}}
    with pytest.raises(NotScorable, match="needs a judge"):
        score(["program_html"], program_html=[target])
    judge = Asked(True)
    assert score(["program_html"], program_html=[target], judge=judge) == 1
    assert judge.questions == [Question("How much?", "a cart; mine", "My Cart")]


def test_what_cannot_be_scored_is_known_before_anybody_plays():
    target = {"url": "last", "locator": "", "required_contents": {"must_include": ["x"]}}
    fuzzy = task(["string_match"], reference_answers={"fuzzy_match": "N/A"}, string_note="no such thing")
    assert "DYNAWEB_JUDGE_URL" in why_not_scorable(fuzzy) and not why_not_scorable(fuzzy, Asked(True))
    assert not why_not_scorable(task(["url_match"], reference_answers={"fuzzy_match": "N/A"}))
    assert "reference_answers.guess" in why_not_scorable(task(["string_match"], reference_answers={"guess": "x"}))
    assert "unknown required_contents: sound" in why_not_scorable(
        task(["program_html"], program_html=[target | {"required_contents": {"sound": "x"}}])
    )
    running = task(["program_html"], program_html=[target | {"prep_actions": ["go()"]}])
    assert "more than read" in why_not_scorable(running)
    assert not why_not_scorable(task(["program_html"], program_html=[target]))


def test_an_evaluator_has_a_name_and_a_known_mode(monkeypatch):
    assert (Evaluator().name, Evaluator("webarena").name) == ("right", "webarena")
    with pytest.raises(ValueError, match="'webarena'"):
        Evaluator("lax")
    monkeypatch.setenv("DYNAWEB_JUDGE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("DYNAWEB_JUDGE_MODEL", "m")
    assert Evaluator().judge.endpoint.model == "m" and Evaluator(judge=Asked(True)).judge.verdict
