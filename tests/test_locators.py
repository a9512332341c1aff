"""Locators of program_html: read, never run, and answered alike in Chromium and on parsed HTML."""

import json
import threading

import pytest
from flask import Flask
from waitress.server import create_server

from dynaweb_lite import chromium_reader
from dynaweb_lite.browser import RealWeb
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.evaluators import locate, why_not_scorable
from dynaweb_lite.html_page import Page, parse
from dynaweb_lite.inner_text import inner_text, page_html
from dynaweb_lite.locators import PREPARING, LocatorError, parse_call, parse_locator
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.stylesheets import displays
from dynaweb_lite.tasks import Task, TaskError, load_tasks
from dynaweb_lite.webarena_tasks import task_file

HOOKS = """<!doctype html><html><head><title>Hooks</title><link rel="stylesheet" href="/site.css"></head><body>
<div id="order_history_block"><ul class="note-list"><li><span class="note-list-comment">Newest  note</span></li>
<li><span class="note-list-comment">Older</span></li></ul></div><span id="order_status">Canceled</span>
<div class="submission__inner"><h1>Look <a href="/f/x/1">here</a></h1><img src="/i.png" alt=""><a>no address</a>
<p>one</p><p>two<br>three</p></div><div class="cover-status"><i>icon</i> Busy today</div>
<div class="profile-header"><a itemprop="url" href="http://x.test/">x.test</a></div>
<div class="data item content">Good mug<table><tr><td>Size</td><td>L</td></tr>
<tr><td>Price</td><td>$5</td></tr></table></div>
<div id="notes-list"><div class="timeline-discussion-body">first</div>
<li><div class="timeline-discussion-body">last &amp; least</div></li></div>
<div class="submission__vote"><form class="vote vote--user-upvoted"><button>Up</button></form></div>
<div class="visibility-icon" title="Private - only members"></div>
<p class="detail-page-description"><a class="gl-font-monospace">dialog</a><b><a class="gl-font-monospace">no</a></b>
<a class="gl-font-monospace">main</a></p><div class="row"><span>Page 1</span><span>of 2</span></div>
<form id="f"><input name="product[name]" value="Mug"><input name="title" value="T"><input type="checkbox" title="General
Subscription" checked><input type="checkbox" name="off"><select name="status_id"><option value="a">A</option>
<option value="b" selected>B b</option></select><select name="customer_group_ids" multiple><option>x</option>
<option selected>y</option><option selected>z</option></select><select name="none"></select>
<textarea title="What’s on your mind?">
Refund, please</textarea><button value="go">Go</button></form>
<div id="content"><select class="routing_engines"><option>Car</option><option selected>Foot</option></select></div>
<div class="hide">not <b>shown</b></div><div data-index="actions"><a class="admin__collapsible-title">Actions</a></div>
<div id="sidebar"><section>Books<ul><li>a</li><li>b</li></ul></section><div><section>deep</section></div></div>
<table><tr><td data-label="Account"><span class="gl-avatar-labeled-sublabel">@vinta</span></td>
<td class="col-max-role"><span>Guest</span></td></tr><tr><td data-label="Account"><span
class="gl-avatar-labeled-sublabel">@koush</span></td><td class="col-max-role"><span>Owner</span></td></tr></table>
</body></html>"""
STYLE = ".row { display: flex } .hide{display:none} @media print { .row { display: none } } a:hover { display: block }"

EXAMPLES = [
    ('document.querySelector("#order_status").outerText', "Canceled"),
    (
        'document.querySelector("#order_history_block").querySelector(".note-list").firstElementChild.querySelector('
        '".note-list-comment").outerText',
        "Newest note",
    ),
    (
        "[...document.querySelector('.submission__inner').querySelectorAll('[href],[src]')].map(elem => "
        "elem.getAttribute('href') || elem.getAttribute('src')).join(' ')",
        "/f/x/1 /i.png",
    ),
    (
        "document.querySelector('.submission__inner').outerText + [...document.querySelector('.submission__inner')."
        "querySelectorAll('[href],[src]')].map(elem => elem.getAttribute('href') || elem.getAttribute('src'))"
        ".join(' ')",
        "Look here\nno address\n\none\n\ntwo\nthree/f/x/1 /i.png",
    ),
    ("document.querySelector('.cover-status').lastChild.textContent", " Busy today"),
    ("document.querySelector('.profile-header [itemprop=\"url\"]').outerText", "x.test"),
    (
        "document.querySelector('.data.item.content').outerText + (document.querySelector('.product.attribute.overview "
        "[itemprop=\"description\"]')?.outerText || '')",
        "Good mug\nSize\tL\nPrice\t$5",
    ),
    (
        "document.querySelector('[id=\"notes-list\"').lastElementChild.querySelector('.timeline-discussion-body').outerText",
        "last & least",
    ),
    (
        "document.querySelector('div.submission__vote').querySelector('form').getAttribute('class')",
        "vote vote--user-upvoted",
    ),
    ("document.querySelector('.visibility-icon').getAttribute('title')", "Private - only members"),
    ('document.querySelectorAll(".detail-page-description > a.gl-font-monospace")[1].outerText', "main"),
    ('document.querySelector("div#content select.routing_engines").selectedIndex', 1),
    ("document.querySelector('[name=\"customer_group_ids\"').selectedIndex", 1),
    ("document.querySelector('[name=\"product[name]\"').value", "Mug"),
    ("document.querySelector('input[name=\"title\"').value", "T"),
    ("document.querySelector('[name=\"status_id\"').value", "b"),
    ("document.querySelector('[title=\"What’s on your mind?\"').value", "Refund, please"),
    ("document.querySelector('[title^=\"General\"').checked.toString()", "true"),
    ("document.querySelector('#sidebar > section').outerText", "Books\na\nb"),
]
ODD = [
    "document.querySelector('.nowhere').outerText",
    "document.querySelector('.nowhere')?.outerText",
    "document.querySelector('.nowhere')?.firstElementChild.querySelector('a').outerText",
    "document.querySelector('.hide').outerText",
    "document.querySelector('.row').innerText",
    "document.querySelector('[name=\"off\"').checked",
    "document.querySelector('[name=\"off\"').value",
    "document.querySelector('[name=\"none\"').selectedIndex",
    "document.querySelector('[name=\"none\"').value",
    "document.querySelector('#f button').value",
    "document.querySelector('#order_status').value",
    "document.querySelector('#order_status').getAttribute('title')",
    "document.querySelector('#sidebar').querySelectorAll('div section')[0].outerText",
    "document.querySelector('#sidebar').querySelectorAll('#sidebar > section').length",
    "document.querySelectorAll('p')[9].outerText",
    "document.querySelector('.cover-status').firstChild.textContent",
    "document.querySelector('.note-list').lastElementChild.previousElementSibling.innerText",
    "document.querySelectorAll('#f option').length + document.querySelectorAll('li').length",
    "document.querySelectorAll('li')[0].parentElement.getAttribute('class')",
    "'a' + document.querySelectorAll('li').length + (document.querySelector('.nowhere') || ' none')",
    "document.querySelector('~~').outerText",
    "document.querySelector('select').innerText",
    "document.querySelector('select option').innerText",
    "[...document.querySelectorAll('li')].map(e => e.textContent).join('|')",
    "[...document.querySelectorAll('img')].map(e => e.value).join()",
]


class Hooks:
    """A server of one page with the hooks that WebArena's locators read."""

    hosts = ["hooks.test"]

    def __init__(self):
        self.app, self.port = Flask(__name__), 0
        self.app.add_url_rule("/", "page", lambda: HOOKS)
        self.app.add_url_rule("/site.css", "css", lambda: (STYLE, {"Content-Type": "text/css"}))
        self.app.add_url_rule("/layout", "layout", lambda: LAYOUT)

    def start(self):
        server = create_server(self.app, host="127.0.0.1", port=0, threads=2)
        self.port = server.effective_port
        threading.Thread(target=server.run, daemon=True).start()
        return self

    def drop(self, session):
        pass


def task(path="/", **checks):
    return Task("hooks", ("hooks",), f"http://hooks.test{path}", "Look", {"eval_types": [], **checks})


def page():
    found = Page("http://hooks.test/", parse(HOOKS, "text/html"), source=(HOOKS, "text/html"))
    found.styles = [STYLE]
    return found


def value(page, locator):
    """What a page says to a locator, "throws" where JavaScript would."""
    try:
        return page.locate(parse_locator(locator))
    except LookupError:
        return "throws"


def tasks_of(name):
    """WebArena's tasks, or a skip that says what to install."""
    try:
        return load_tasks(task_file(name))
    except TaskError as error:
        pytest.skip(str(error))


def locators_of(tasks):
    found = {target["locator"] for task in tasks for target in task.eval["program_html"] or ()}
    return sorted(locator for locator in found if locator.strip() and not parse_call(locator))


@pytest.fixture(scope="module")
def real():
    with RealWeb(Hooks(), contexts=1) as web:
        yield web


@pytest.mark.parametrize(("locator", "found"), EXAMPLES)
def test_webarenas_forms_are_answered(locator, found):
    assert value(page(), locator) == found


def test_chromium_and_parsed_html_answer_alike(real):
    real.reset([task()])
    tab, other = real.episodes[0].tab.page, page()
    try:
        installed = locators_of(load_tasks(task_file()))
    except TaskError:
        installed = []
    for locator in [*(locator for locator, _ in EXAMPLES), *ODD, *installed]:
        try:
            seen = real.worker.run(chromium_reader.answer(tab, parse_locator(locator)))
        except LookupError:
            seen = "throws"
        assert seen == value(other, locator), locator
    assert real.worker.run(chromium_reader.visible_text(tab)) == other.text()


def test_every_locator_of_the_812_tasks_is_understood():
    tasks = tasks_of("webarena")
    assert len(tasks) == 812 and len(locators_of(tasks)) > 60
    assert [why for t in tasks if (why := why_not_scorable(t, judge=lambda question: True))] == []
    unjudged = [t for t in tasks if why_not_scorable(t)]
    assert all("fuzzy_match" in t.eval["reference_answers"] for t in unjudged) and len(unjudged) == 118


def test_every_locator_of_webarena_lite_is_understood():
    try:
        rows = json.loads(task_file("webarena-lite").read_text())
    except TaskError as error:
        pytest.skip(str(error))
    for row in rows:
        assert why_not_scorable(Task.from_json(row), judge=lambda question: True) == ""


@pytest.mark.parametrize(
    "locator",
    [
        "alert(1)",
        "document.querySelector('p').click()",
        "document.querySelector('p').innerHTML",
        "document.cookie",
        "window.location",
        "elem.outerText",
        "document.querySelector('p').outerText; alert(1)",
        "document.querySelector('p')['outerText']",
        "document.querySelector(`${alert(1)}`).constructor",
        "[...document.querySelectorAll('p')].map(e => alert(e))",
        "__import__('os').system('true')",
        "document.querySelector('p",
        "1 + 1",
    ],
)
def test_what_does_more_than_read_is_refused(locator):
    with pytest.raises(LocatorError, match="locator"):
        parse_locator(locator)
    broken = task(eval_types=["program_html"], program_html=[target(locator)])
    assert "cannot read the locator" in why_not_scorable(broken)


def target(locator, **more):
    return {"url": "last", "locator": locator, "required_contents": {"must_include": ["x"]}, **more}


def test_text_in_a_locator_is_never_run_in_the_browser(real):
    real.reset([task()])
    tab = real.episodes[0].tab.page
    css = "p'); document.title = 'ran'; ('"
    tree = parse_locator(f"document.querySelector({json.dumps(css)}).outerText")
    with pytest.raises(LookupError):
        real.worker.run(chromium_reader.answer(tab, tree))
    assert real.worker.run(tab.title()) == "Hooks"


def test_func_calls_are_read_as_data():
    assert parse_call("func:name(__page__, 'a b')") == ("name", ["__page__", "a b"])
    assert parse_call("func:name()") == ("name", [])
    assert parse_call("func:reddit_get_post_url('__last_url__')") == ("reddit_get_post_url", ["__last_url__"])
    assert parse_call("document.querySelector('a')") is None
    for text in ("func:name(open('x'))", "func:name(1)", "func:name('a', b)"):
        with pytest.raises(LocatorError, match="arguments"):
            parse_call(text)


def test_default_text_of_values():
    assert locate(page(), "document.querySelector('[name=\"off\"').checked") == "false"
    assert locate(page(), "document.querySelector('#order_status').value") == ""
    assert locate(page(), "document.querySelector('.nowhere').value") == ""


PREPARE = "document.querySelector('[data-index=\"actions\"]').querySelector('.admin__collapsible-title').click()"


def test_prep_actions_click_and_nothing_else(real):
    tree = parse_locator(PREPARE, PREPARING)
    page().prepare(tree)  # plain HTML: nothing happens
    with pytest.raises(LookupError):
        page().prepare(parse_locator("document.querySelector('.nowhere').click()", PREPARING))
    with pytest.raises(NotScorable, match="need a browser"):
        page().prepare(parse_locator("document.querySelector('button').click()", PREPARING))
    with pytest.raises(NotScorable, match="only click"):
        page().prepare(parse_locator("document.querySelector('button').value"))
    real.reset([task()])
    tab = real.episodes[0].tab.page
    script = "document.querySelector('.admin__collapsible-title').onclick = () => { document.title = 'open' }"
    real.worker.run(tab.evaluate(script))
    checks = [target("document.querySelector('#order_status').outerText", prep_actions=[PREPARE])]
    checks[0]["required_contents"] = {"exact_match": "Canceled"}
    real.episodes[0].task = task(eval_types=["program_html"], program_html=checks)
    assert real.step(["stop []"])[0].reward == 1 and real.worker.run(tab.title()) == "open"


LAYOUT = """<!doctype html><title>Layout</title><style>.f{display:flex} .n { display: none }
.g, b.q {display:inline-grid} @media print { .f {display:none} } label.h{display:grid}
div.f.b { display: block } .f.b > i { display: block }
</style><body><div>a <select><option>One</option><option selected>Two
 x</option></select> b</div>
<div>a<textarea>hi</textarea>b <input value=x> c <button> go  <b>now</b> </button> d <img alt=p> e</div>
<div><p>one</p><p>two</p>three<br>four<h1>h</h1>five</div><table><caption>Cap</caption><thead><tr><th>A</th><th>B</th></tr>
</thead><tbody><tr><td>1</td><td><p>2</p></td></tr><tr><td>x</td><td></td></tr></tbody></table>
<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><dl><dt>k</dt><dd>v</dd></dl>
<div>a<span hidden>no</span><span style="display: none">none</span> b <span> c </span> d</div>
<div><pre>
x
  y  z
</pre>tail</div><div>a&nbsp; b<div> </div>c<div></div>d</div>
<fieldset><legend>L</legend>x<label>q <input type=checkbox> w</label></fieldset>
<div>  lead <b> in </b> trail  </div><div><hr>x<hr>y</div><div><a>l1</a><a>l2</a> <span>s</span>
<div>blk</div> after</div><div><p> </p>x<p></p>y</div><div>a<br><br>b<p>c</p><br>d</div>
<div><details><summary>S</summary>body</details><details open><summary>T</summary>shown</details>z</div>
<div>x <table><tr><td><p>a</p><p>b</p></td><td>b</td></tr></table> tail</div><div><span>a
</span><span>
b</span></div><p>One <b>two </b> <i> three</i>. <code> x </code></p><div hidden>hid <p>a</p> b</div>
<div class=f><span>a</span><span>b</span> <a>c</a> text <button> B </button><input><select><option>o</option>
</select> t </div><div>x <form class=g><label>L <input></label><button>G</button></form> y</div>
<label class=h>T <input></label>
<div>a<b class=n>n</b> <b class=q> <i>1</i><i>2</i> </b> z</div><ul class=f><li>a</li><li>b</li></ul>
<div class="f b"><i>i</i><i>j</i></div>
<div>x <svg><title>T</title><text>A  b</text><text>B <tspan>c</tspan></text></svg> y</div>
</body>"""


def test_inner_text_is_chromiums_to_the_letter(real):
    real.reset([task("/layout")])
    seen = real.worker.run(
        real.episodes[0].tab.page.evaluate("[...document.querySelectorAll('body, body *')].map(e => e.innerText ?? '')")
    )
    document = parse(LAYOUT, "text/html")
    styles = displays(document, [e.text for e in document.iter("style")])
    ours = [inner_text(e, styles) for e in (document.find("body"), *document.find("body").iterdescendants())]
    inside = ("tbody", "tspan", "text", "title", "svg")  # tbody: only Chromium adds it; drawings have no innerText
    tags = real.worker.run(
        real.episodes[0].tab.page.evaluate("[...document.querySelectorAll('body, body *')].map(e => e.localName)")
    )
    seen = [text for text, tag in zip(seen, tags, strict=True) if tag not in inside]
    elements = (document.find("body"), *document.find("body").iterdescendants())
    ours = [text for text, element in zip(ours, elements, strict=True) if element.tag not in inside]
    assert len(ours) > 100 and ours == seen


def test_a_page_is_written_as_html_with_what_was_sent():
    source = '<!doctype html><html><head></head><body><p title="a&amp;&quot;b">x &lt; y&nbsp;<br></p><!-- c -->'
    source += '<input value="1"></body></html>'
    sent = Page("http://a.test/", parse(source, "text/html"), source=(source, "text/html"))
    assert sent.content() == source.replace("<!doctype", "<!DOCTYPE")
    sent.document.find(".//input").set("value", "typed")
    assert sent.content() == source.replace("<!doctype", "<!DOCTYPE") and "typed" in page_html(sent.document)
    assert value(sent, "document.querySelector('input').value") == "typed"
    assert value(sent, "document.querySelector('input').getAttribute('value')") == "1"


def test_direct_pages_read_their_style_sheets():
    direct = DirectWeb(Hooks())
    direct.reset([task()])
    assert "Page 1\nof 2" in direct.episodes[0].tab.page.text() and "shown" not in direct.episodes[0].tab.page.text()
