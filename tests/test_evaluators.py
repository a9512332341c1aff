"""Hand-made answers, URLs and pages against WebArena's evaluators."""

import pytest
from lxml import html

from dynaweb_lite.direct import Page
from dynaweb_lite.evaluators import NotScorable, evaluate, exact_match, locate, must_include, url_match
from dynaweb_lite.tasks import Task

PAGE = """<body><h1>My Cart</h1><div class="total">Total: <b>$12.50</b></div><p>a</p><p>b</p>
<form><input name="product[qty]" value="3"><select id="s"><option value="n">Name</option>
<option value="p" selected>Price</option></select><textarea>Hi there</textarea></form></body>"""


def page(url="http://shop.test/cart"):
    return Page(url, html.document_fromstring(PAGE))


def task(types, **rest):
    return Task(1, ("shopping",), "__SHOPPING__", "How much?", {"eval_types": types, **rest})


def score(types, answer="", last=None, open_page=None, judge=None, **rest):
    return evaluate(task(types, **rest), answer, last or page(), open_page or (lambda url: page(url)), judge)


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


def test_fuzzy_match_needs_a_judge_unless_the_answer_is_the_reference():
    answers = {"fuzzy_match": ["at noon"]}
    assert score(["string_match"], "At noon", reference_answers=answers) == 1
    with pytest.raises(NotScorable, match="judge"):
        score(["string_match"], "12 o'clock", reference_answers=answers)
    assert score(["string_match"], "12 o'clock", reference_answers=answers, judge=lambda *_: True) == 1
    assert score(["string_match"], "12 o'clock", reference_answers=answers, judge=lambda *_: False) == 0


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
    ],
)
def test_url_match(reference, url, equal):
    assert url_match(reference, url) == equal


@pytest.mark.parametrize(
    ("locator", "text"),
    [
        ("document.querySelector('.total').outerText", "Total: $12.50"),
        ('document.querySelector("div.total b").innerText', "$12.50"),
        ("document.querySelectorAll('p')[1].textContent", "b"),
        ("document.querySelectorAll('p')[-1].textContent;", "b"),
        ("document.querySelectorAll('p')[7].textContent", ""),
        ("() => document.querySelector('.nowhere').outerText", ""),
        ("document.querySelector('[name=\"product[qty]\"').value", "3"),
        ("document.querySelector('#s').value", "p"),
        ("document.querySelector('textarea').value", "Hi there"),
        ("func:get_query_text(__page__, 'h1')", "My Cart"),
        ("", "My Cart Total: $12.50 a b Name Price"),
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
    with pytest.raises(NotScorable, match="no function 'launch'"):
        score(["program_html"], program_html=[target | {"url": "func:launch()"}])


def test_the_score_is_the_product_of_the_parts():
    parts = {"reference_url": "__SHOPPING__/cart", "reference_answers": {"exact_match": "12.50"}}
    assert score(["string_match", "url_match"], "$12.5", **parts) == 1
    assert score(["string_match", "url_match"], "13", **parts) == 0
    assert score(["string_match", "url_match"], "12.50", last=page("http://shop.test/"), **parts) == 0
    with pytest.raises(NotScorable, match="no evaluator"):
        score(["guess"])
