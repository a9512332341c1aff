"""The two real worlds: a browser and plain WSGI calls must show the same pages, and a browser must survive anything."""

import asyncio
import random
import socket
import threading
import time
from dataclasses import replace

import pytest
from flask import Flask, Response, redirect, request
from waitress.server import create_server

from dynaweb_lite.browser import RealWeb
from dynaweb_lite.chromium import BrowserError, find_chromium
from dynaweb_lite.chromium_reader import visible_text
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.explore import RandomExplorer, collect, transitions_of
from dynaweb_lite.navigation import Navigation
from dynaweb_lite.observation import parse_observation
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.webarena import MODULES
from dynaweb_lite.tasks import Task, replica_urls
from dynaweb_lite.trajectory import Trajectory, load_trajectories

KITCHEN = """<html><head><title>Kitchen  sink</title></head><body><header><a href="/">Home</a>
<a href="/cart">My <b>Cart</b> (<span>{n}</span>)</a></header>
<nav aria-label="Main"><ul><li><a href="/a?x=1&y=b c">A &amp; B</a></li>
<li>plain <strong>bold</strong> tail</li></ul></nav><h1>Title <span>x</span></h1>
<h2><a href="#down">Down</a></h2><h3></h3>
<p>Some   text
 here <strong>strong</strong>, and <a href="/z">link</a>. <em>em</em><br>after &nbsp; break</p><div>&nbsp;</div>
<img src="data:," alt="A pic"><img src="data:,"><img src="data:," alt="">
<a href="/img"><img alt="In link" src="data:,"></a>
<form action="/send" method="post"><label for="q">Query</label><input type="search" id="q" name="q">
<input name="pl" placeholder="Your place"><label>Wrapped <input type="text" name="w" value="it's" maxlength="5"></label>
<label><input type="checkbox" name="c" checked> Check me</label><input type="radio" id="r1" name="r" value="1">
<label for="r1">Radio one</label><label><input type="radio" name="r" value="2">Two</label>
<label for="s">Sort by</label><select id="s" name="s"><option value="p">Price</option><option selected>Name</option>
<option disabled>Never</option></select><select name="u" disabled><option>One</option></select>
<label>In <select name="l"><option>L1</option><option>L2</option></select></label>
<textarea name="t" aria-label="Notes">
Hello
there</textarea><input type="password" aria-label="Pass" name="p">
<input type="number" value="3" title="Num" name="n" max="9">
<input type="hidden" name="h" value="~*&amp;">
<button>Go <span>now</span></button><input type="submit" name="which" value="Send"><button disabled>Dis</button>
<button aria-label="lab" type="button">X</button><button><img src="data:," alt="ic"> txt</button></form>
<form action="/get"><input name="must" required aria-label="Must"><button name="b" value="1">Find</button></form>
<form action="/get"><input name="only" aria-label="Only"></form>
<table><caption>Cap</caption><tr><th>Head</th><th>H2</th></tr><tr><td>Cell</td><td><a href="/c">C link</a></td></tr>
<tr><th>row</th><td>$3 <b>x</b></td></tr></table><table><tr><td>lay</td><td>out</td></tr></table>
<div hidden>hid</div><div style="display: none">none</div><a>no href</a><label>orphan</label><a href="/e"></a>
<a href="http://elsewhere.example/">Away</a><a href="mailto:x@y.z">Mail</a>
<fieldset><legend>Leg</legend><input name="ff"></fieldset><section aria-label="sec">s</section><pre>a
  b</pre><a href="/text">Text</a><a href="/loop">Gone</a></body></html>"""

TRICKS = """<title>Tricks</title><a id="p" href="/two" target="_blank">Popup</a>
<button onclick="alert('boo')">Alert</button>
<div style="position:relative"><button onclick="document.title='bad'">Covered</button><div
style="position:absolute;inset:0;background:red">lid</div></div>
<button style="opacity:0;width:0;height:0;padding:0;border:0"
onclick="document.title='bad'"></button><a href="/file">Download</a>
<button onclick="this.textContent='Clicked'">Press</button>
<button onclick="for(;;);">Hang</button><button onclick="setTimeout(() => location='/two')">Later</button>"""


class Site:
    """A SiteServer of two pages: one with all that plain HTML has, one with what only scripts do."""

    hosts = ["sink.test"]

    def __init__(self):
        flask, self.carts, self.dropped, self.server, self.port = Flask(__name__), {}, [], None, 0
        self.app = flask

        @flask.get("/")
        def home():
            return KITCHEN.replace("{n}", str(self.carts.get(request.cookies["dynaweb_session"], 0)))

        @flask.post("/send")
        def send():
            session = request.cookies["dynaweb_session"]
            self.carts[session] = self.carts.get(session, 0) + 1
            return redirect("/sent?" + request.get_data(as_text=True))

        @flask.get("/tricks")
        def tricks():
            return TRICKS

        @flask.get("/text")
        def text():
            return "plain <b>text</b>", {"Content-Type": "text/plain"}

        @flask.get("/file")
        def file():
            return b"x", {"Content-Type": "application/zip", "Content-Disposition": "attachment; filename=x.zip"}

        @flask.get("/<path:name>")
        def other(name):
            rows = "".join(f"<li>{k}={v!r}</li>" for k, v in request.args.items(multi=True))
            body = f"<h1>{name}</h1><ul>{rows}</ul><a href='/'>Back</a>"
            return f"<title>{name}</title>{body}", 404 if name == "loop" else 200

    def start(self):
        if self.server is None:
            self.server = create_server(self.app, host="127.0.0.1", port=0, threads=4)
            self.port = self.server.effective_port
            threading.Thread(target=self.server.run, daemon=True).start()
        return self

    def drop(self, session):
        self.dropped.append(session)
        self.carts.pop(session, None)


def task(path="/", host="sink.test", **rest):
    evaluation = {"eval_types": ["url_match"], "reference_url": f"http://{host}/two"} | rest
    return Task(path, ("sink",), f"http://{host}{path}", "Look around", evaluation)


@pytest.fixture(scope="module")
def site():
    return Site().start()


@pytest.fixture(scope="module")
def real(site):
    with RealWeb(site, contexts=2, max_elements=100, step_timeout_seconds=10) as web:
        yield web


def pick(page, label):
    """The id of the first element whose label starts so."""
    return next(e.id for e in page.elements if e.label.startswith(label))


SCRIPTS = [
    ["click link 'My Cart (0)'", "go_back", "go_forward", "go_forward", "go_back", "go_back"],
    ["click link 'A & B'", "click link 'Back'", "click link 'Text'", "go_back", "click link 'Gone'"],
    [
        "type searchbox 'Query' [red  mug ~*&+ü] [0]",
        "click checkbox",
        "click radio 'Two'",
        "select combobox 'Sort by' [Price]",
        "select combobox 'Sort by' [Nothing]",
        "type textbox 'Wrapped' [too long] [0]",
        "type textbox 'Notes' [a b] [0]",
        "click option 'L2'",
        "type spinbutton [7] [0]",
        "type textbox 'Pass' [abc] [0]",
        "click button 'Send'",
        "go_back",
        "click button 'Go now'",
    ],
    ["type textbox 'Your place' [x] [1]", "go_back", "click link 'My Cart (1)'"],
    ["click button 'Find'", "type textbox 'Must' [x y] [1]", "go_back", "type textbox 'Only' [] [1]"],
    [
        "type spinbutton [many] [0]",
        "type spinbutton [99] [0]",
        "click button 'Go now'",
        "type spinbutton [] [0]",
        "click button 'Go now'",
    ],
    [
        "click StaticText 'plain'",
        "click link 'Away'",
        "click link 'Mail'",
        "click link 'Down'",
        "click link 'Down'",
        "go_back",
        "click heading 'Title x'",
        "scroll [down]",
        "click button 'Dis'",
        "click combobox",
    ],
    [
        "nonsense",
        "click [999]",
        "goto [http://elsewhere.example/]",
        "goto [http://sink.test/a?q=1#f]",
        "go_back",
        "go_back",
    ],
    ["type textbox 'Notes' [line] [1]", "click button 'lab'", "press [Enter]", "click img 'A pic'"],
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_both_worlds_read_the_same_to_the_letter(site, real, script):
    direct = DirectWeb(site, max_elements=100)
    page, other = real.reset([task()])[0], direct.reset([task()])[0]
    assert page.text == other.text
    for line in script:
        kind, _, rest = line.partition(" ")
        name, bracket, words = rest.partition(" [") if kind in ("type", "select") else (rest, "", "")
        labelled = kind in ("click", "type", "select") and not name.startswith("[")
        action = f"{kind} [{pick(page, name)}]{bracket}{words}" if labelled else line
        page, other = real.step([action])[0].observation, direct.step([action])[0].observation
        assert page.text == other.text, action
        assert parse_observation(page.text) == page


@pytest.mark.parametrize("host", ["shop.test", "forum.test"])
def test_a_random_walk_on_the_replicas_reads_the_same(host):
    server, explorer = SiteServer(seed=5), RandomExplorer(7, odd_share=0.4)
    with RealWeb(server, contexts=1) as real, server:
        direct = DirectWeb(server)
        page, other = real.reset([task(host=host)])[0], direct.reset([task(host=host)])[0]
        urls, forward = set(), random.Random(0)
        for step in range(60):
            assert page.text == other.text, f"step {step}"
            urls.add(page.url)
            action = "go_forward" if forward.random() < 0.05 else str(explorer.decide(episode(step), page))
            page, other = real.step([action])[0].observation, direct.step([action])[0].observation
        assert len(urls) > 8


@pytest.fixture(scope="module")
def ground():
    """WebArena's replicas in both worlds."""
    server = SiteServer(ground="webarena")
    with server, RealWeb(server, contexts=1) as real:
        yield real, DirectWeb(server)


@pytest.mark.parametrize("site", MODULES)
def test_a_random_walk_on_webarenas_replicas_reads_the_same(ground, site):
    (real, direct), explorer, urls = ground, RandomExplorer(site, odd_share=0.3), set()
    start = Task(site, (site,), replica_urls()[site] + "/", "Look around", {"eval_types": []})
    page, other = real.reset([start])[0], direct.reset([start])[0]
    for step in range(30):
        assert page.text == other.text, f"step {step}"
        urls.add(page.url)
        if step % 5 == 0:
            shown = real.worker.run(visible_text(real.episodes[0].tab.page))
            assert shown.split() == direct.episodes[0].tab.page.text().split(), page.url
        action = str(explorer.decide(episode(step), page))
        page, other = real.step([action])[0].observation, direct.step([action])[0].observation
    assert len(urls) > 4


TABS = [
    "new_tab",
    "goto [http://sink.test/a]",
    "go_back",
    "go_forward",
    "click link 'Back'",
    "tab_focus [1]",
    "click link 'A & B'",
    "go_back",
    "tab_focus [0]",
    "click link 'Back'",
    "new_tab",
    "tab_focus [7]",
    "goto [http://elsewhere.example/]",
    *["close_tab"] * 6,
    "click link 'A & B'",
]


def test_tabs_read_the_same_in_both_worlds(site, real):
    direct = DirectWeb(site, max_elements=100)
    starts = replace(task(), start_url="http://sink.test/one |AND| http://sink.test/ |AND| http://sink.test/three")
    page, other = real.reset([starts])[0], direct.reset([starts])[0]
    assert page.text == other.text and page.tab == 0 and [t for _, t, _ in page.other_tabs] == ["Kitchen sink", "three"]
    for line in TABS:
        kind, _, name = line.partition(" ")
        action = f"click [{pick(page, name)}]" if kind == "click" else line
        page, other = real.step([action])[0].observation, direct.step([action])[0].observation
        assert page.text == other.text, line
    page, other = real.reset([task("/tricks")])[0], direct.reset([task("/tricks")])[0]
    for action in (f"click [{pick(page, 'link')}]", "go_back", "close_tab", "close_tab"):
        page, other = real.step([action])[0].observation, direct.step([action])[0].observation
        assert page.text == other.text, action


def episode(steps):
    """An episode of so many steps, of which only the number matters."""
    return Trajectory(0, "", steps=[None] * steps)


def test_what_the_text_leaves_out(real):
    text = real.reset([task()])[0].text
    assert "[3] navigation 'Main'" in text and "link 'My Cart (0)'" in text
    assert text.count("'Query'") == 1 and "StaticText 'Query'" not in text  # a label is the name of its control
    assert "StaticText 'orphan'" in text  # a label of nothing is text
    assert "textbox 'Your place' value: ''" in text and "checkbox 'Check me' checked: True" in text
    assert (
        "option 'Name' selected: True" in text
        and "option 'Price'\n" in text
        and "option 'Never' disabled: True" in text
    )
    assert "button 'Dis' disabled: True" in text and "StaticText 'Dis'" not in text
    assert "hid" not in text and "none" not in text and "rowgroup" not in text


def test_long_pages_are_cut_and_ids_still_hit_their_elements(site):
    with RealWeb(site, contexts=1, max_elements=30) as real:
        direct = DirectWeb(site, max_elements=30)
        page, other = real.reset([task()])[0], direct.reset([task()])[0]
        assert page.text == other.text and page.cut > 0 and len(page.elements) == 30
        action = f"click [{pick(page, 'button')}]" if page.find("button") else f"click [{pick(page, 'checkbox')}]"
        assert real.step([action])[0].observation.text == direct.step([action])[0].observation.text != page.text


def test_episodes_side_by_side_do_not_share_state_and_reset_forgets(site, real):
    pages = real.reset([task(), task(), task()])
    go = pick(pages[0], "button 'Go now'")
    steps = real.step([f"click [{go}]", None, "go_back"])
    assert steps[1] is None and "no page to go back" in steps[2].observation.last_action_error
    back = real.step(["goto [http://sink.test/]"] * 3)
    assert [bool(s.observation.find("link", "My Cart (1)")) for s in back] == [True, False, False]
    assert real.reset([task()])[0].find("link", "My Cart (0)")
    assert real.step(["go_back"])[0].observation.url == "http://sink.test/"


def test_stop_is_scored_in_both_worlds(site, real):
    tasks = [task("/two"), task("/three")]
    target = {"url": "http://sink.test/get?z=5", "locator": "document.querySelector('li').innerText"}
    opening = task(eval_types=["program_html"], program_html=[target | {"required_contents": {"exact_match": "z='5'"}}])
    unscorable = task(eval_types=["string_match"], reference_answers={"fuzzy_match": "nice"})
    for world in (real, DirectWeb(site)):
        world.reset([unscorable])
        step = world.step(["stop [lovely]"])[0]
        assert (step.reward, step.terminated) == (0, True) and "judge" in step.info["error"]
        world.reset([*tasks, opening])
        assert [(s.reward, s.terminated) for s in world.step(["stop [x]"] * 3)] == [(1, True), (0, True), (1, True)]


def test_a_click_fails_where_a_persons_would(real):
    page = real.reset([task("/tricks")])[0]

    def click(label):
        return real.step([f"click [{pick(page, label)}]"])[0].observation

    assert "covered by div" in click("button 'Covered'").last_action_error
    assert "not visible" in click("button ''").last_action_error
    assert "dismissed a dialog: boo" in click("button 'Alert'").last_action_error
    assert click("button 'Press'").find("button", "Clicked")
    assert click("link 'Download'").url.endswith("/tricks")
    assert click("button 'Later'").title == "two"


def test_popups_are_tabs(real):
    page = real.reset([task("/tricks")])[0]
    page = real.step([f"click [{pick(page, 'link')}]"])[0].observation
    assert page.text.startswith("Tab 0: Tricks | http://sink.test/tricks\nTab 1 (current): two | http://sink.test/two")
    assert real.step(["tab_focus [0]"])[0].observation.title == "Tricks"
    assert "no tab 5" in real.step(["tab_focus [5]"])[0].observation.last_action_error
    assert real.step(["new_tab"])[0].observation.tab == 2
    assert len(real.step(["close_tab"])[0].observation.other_tabs) == 1
    page = real.reset([task("/two")])[0]
    assert not page.other_tabs
    assert "last tab" in real.step(["close_tab"])[0].observation.last_action_error


def test_a_page_that_hangs_or_a_browser_that_dies_ends_the_episode_and_the_next_one_works(site):
    with RealWeb(site, contexts=1, step_timeout_seconds=2) as web:
        page = web.reset([task("/tricks")])[0]
        hang = pick(page, "button 'Hang'")
        step = web.step([f"click [{hang}]"])[0]
        assert step.truncated and "within 2 seconds" in step.info["error"]
        assert web.step(["go_back"])[0].truncated
        assert web.reset([task("/two")])[0].title == "two"
        web.worker.run(web._browser.close())
        step = web.step(["go_back"])[0]
        assert step.truncated and step.info["error"]
        assert web.reset([task("/two")])[0].title == "two"
        assert web.screenshot(0).startswith(b"\x89PNG")


def test_the_browser_works_inside_a_running_event_loop(site):
    async def cell():
        with RealWeb(site, contexts=1) as web:
            return web.reset([task("/two")])[0].title

    assert asyncio.run(cell()) == "two"


def test_without_chromium_the_error_says_what_to_run(site, monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.delenv("DYNAWEB_CHROMIUM", raising=False)
    assert find_chromium() is None
    with pytest.raises(BrowserError, match="playwright install chromium"):
        RealWeb(site)
    with pytest.raises(BrowserError, match="does not exist"):
        find_chromium(tmp_path / "nowhere")


def test_collect_goes_on_where_it_was_killed(site, tmp_path):
    path, world = tmp_path / "walks.jsonl", DirectWeb(site)
    first = collect(RandomExplorer(1), world, [task(), task("/two")], path, 3, max_steps=5, batch=2, progress=False)
    path.write_bytes(path.read_bytes()[:-40])  # a write that was cut off
    again = collect(RandomExplorer(1), world, [task(), task("/two")], path, 5, max_steps=5, batch=2, progress=False)
    assert [t.to_json() for t in again[:2]] == [t.to_json() for t in first[:2]]
    assert len(again) == len(load_trajectories(path)) == 5
    assert transitions_of(again) and all(t.source == "exploration" for t in again)
    with pytest.raises(ValueError, match="no tasks"):
        collect(RandomExplorer(1), world, [], path, 9)


def test_an_interrupted_collection_keeps_finished_batches(site, tmp_path):
    class Interrupted(RandomExplorer):
        def act(self, episodes, observations):
            if len(load_trajectories(tmp_path / "walks.jsonl")) == 2:
                raise KeyboardInterrupt
            return super().act(episodes, observations)

    with pytest.raises(KeyboardInterrupt):
        collect(Interrupted(), DirectWeb(site), [task()], tmp_path / "walks.jsonl", 9, 3, batch=2, progress=False)
    assert len(load_trajectories(tmp_path / "walks.jsonl")) == 2


def test_the_explorer_visits_more_than_a_handful_of_pages_and_acts_oddly():
    world = DirectWeb(SiteServer(seed=3))
    explorer = RandomExplorer(0)
    page, urls, kinds = world.reset([task(host="shop.test")])[0], set(), []
    for step in range(150):
        action = explorer.decide(episode(step), page)
        element = page.element(action.element_id) if action.element_id else None
        kinds.append((action.kind, element.role if element else "", bool(action.text), action.press_enter))
        page = world.step([str(action)])[0].observation
        urls.add(page.url)
    assert len(urls) > 20
    assert ("type", "searchbox", False, True) in kinds and ("type", "searchbox", True, False) in kinds
    assert any(role == "StaticText" for _, role, *_ in kinds) and ("go_back", "", False, True) in kinds


RUDE = """<title>Rude</title><a href="/never">Never</a><a href="/trickle">Trickle</a><a href="/file">File</a>
<a href="/off">Off</a><a href="/dead">Dead</a><a href="/two" target="_blank">Tab</a>
<a href="/never" target="_blank">Late tab</a><a href="/off" target="_blank">Off tab</a>
<button onclick="alert('a')">Alert</button><button onclick="document.title = confirm('c')">Confirm</button>
<button onclick="document.title = prompt('p')">Prompt</button>
<button onclick="onbeforeunload = e => e.preventDefault(); document.title = 'Guarded'">Guard</button>
<button onclick="location = '/off'">Script</button><button onclick="window.open('OFF/two')">Open off</button>
<button onclick="fetch('OFF/two').catch(() => 0).then(answer => document.title = answer ? 'reached' : 'blocked')">Fetch
</button><button onclick="window.close()">Close</button>"""


class Rude(Site):
    """A site that does what real ones do to agents, or worse. Its pages that never come do so when it closes."""

    hosts = ["own.localhost"]

    def __init__(self):
        self.app, self.server, self.port, self.asked, self.over = Flask(__name__), None, 0, [], threading.Event()
        self.unbound = socket.socket()
        self.unbound.bind(("127.0.0.1", 0))  # listens to nobody
        own, port = self.app, self.unbound.getsockname()[1]
        own.before_request(lambda: self.asked.append(request.host.split(":")[0]))

        def trickle():
            yield "<title>Trickle</title><h1>first</h1>"
            while not self.over.wait(0.2):
                yield "<p>more</p>"

        image, zipped = {"Content-Type": "image/png"}, {"Content-Type": "application/zip"}
        zipped["Content-Disposition"] = "attachment; filename=x.zip"
        pages = {
            "/": lambda: RUDE.replace("OFF", f"http://off.localhost:{self.port}"),
            "/off": lambda: redirect(f"http://off.localhost:{self.port}/two"),
            "/dead": lambda: redirect(f"http://own.localhost:{port}/"),
            "/two": lambda: "<title>two</title>",
            "/never": lambda: str(self.over.wait()),
            "/trickle": lambda: Response(trickle()),
            "/file": lambda: (b"x", zipped),
            "/dialogs": lambda: "<title>ok</title><script>alert(1); confirm(2)</script>",
            "/busy": lambda: "<title>busy</title><a href='/slow'>Slow</a><img src='/image' alt=''>",
            "/slow": lambda: time.sleep(1) or "<title>slow</title>",
            "/image": lambda: time.sleep(0.5) or (b"x", image),
        }
        for path, page in pages.items():
            own.add_url_rule(path, path, page)

    def start(self):
        if self.server is None:
            self.server = create_server(self.app, host="127.0.0.1", port=0, threads=40)
            self.port = int(self.server.effective_port)
            threading.Thread(target=self.server.run, daemon=True).start()
        return self

    def drop(self, session):
        pass

    def task(self, path="/", port=None):
        url = f"http://own.localhost:{port or self.port}{path}"
        return Task(url, ("own",), url, "x", {"eval_types": ["url_match"], "reference_url": url}, require_login=False)


@pytest.fixture(scope="module")
def rude_site():
    site = Rude().start()
    yield site
    site.over.set()


@pytest.fixture
def rude(rude_site):
    rude_site.asked.clear()
    return rude_site


UNREACHED = "host not allowed: off.localhost"
RUDENESS = {
    "Never": ("no answer within 3 seconds", "Rude"),
    "Trickle": ("no answer within 3 seconds", "Trickle"),
    "File": ("a download was refused: x.zip", "Rude"),
    "Off": (UNREACHED, "Rude"),
    "Dead": ("host not allowed: own.localhost:", "Rude"),
    "Tab": ("", "two"),
    "Late tab": ("no answer within 3 seconds", "Rude"),
    "Off tab": (UNREACHED, "Rude"),
    "Alert": ("dismissed a dialog: a", "Rude"),
    "Confirm": ("dismissed a dialog: c", "false"),
    "Prompt": ("dismissed a dialog: p", "null"),
    "Guard": ("", "Guarded"),
    "Script": (UNREACHED, "Rude"),
    "Open off": (UNREACHED, "Rude"),
    "Fetch": ("", "blocked"),
    "Close": ("the page closed its own tab", "Rude"),
}
"""What a click leads to on a live site: the error that the agent is told, and the title of the page that it sees."""


def click_on(page, name):
    return f"click [{next(e.id for e in page.elements if e.name == name)}]"


def test_rude_pages_become_errors_that_the_agent_is_told_and_the_run_goes_on(rude):
    with RealWeb(step_timeout_seconds=3) as web:
        pages = web.reset([rude.task() for _ in RUDENESS])
        steps = web.step([click_on(page, name) for page, name in zip(pages, RUDENESS, strict=True)])
        for (name, (error, title)), step in zip(RUDENESS.items(), steps, strict=True):
            told = step.observation.last_action_error
            assert told.startswith(error) and bool(told) == bool(error), (name, told)
            assert step.observation.title == title and step.truncated == (name == "Close"), name
        assert "off.localhost" not in rude.asked
        again = web.step([f"goto [http://own.localhost:{rude.port}/two]"] * len(steps))
        assert [s.observation.title for s in again] == ["two"] * (len(steps) - 1) + ["Rude"]
        told = {name: s.observation.last_action_error for name, s in zip(RUDENESS, again, strict=True)}
        assert {name for name, error in told.items() if error} == {"Guard", "Close"}
        assert "left a page that asked whether to leave it" in told["Guard"]


def test_pages_may_load_from_extra_hosts_but_the_agent_may_not_go_there(rude, monkeypatch):
    monkeypatch.setenv("WA_EXTRA_HOSTS", "tiles.example, off.localhost")
    with RealWeb() as web:
        pages = web.reset([rude.task(), rude.task()])
        rude.asked.clear()
        steps = web.step([click_on(pages[0], "Fetch"), click_on(pages[1], "Off")])
        assert "off.localhost" in rude.asked
        assert steps[1].observation.last_action_error.startswith(UNREACHED) and steps[1].observation.title == "Rude"


def test_replicas_are_no_less_patient(rude):
    names = ["Never", "Trickle", "File", "Off", "Off tab", "Prompt", "Script", "Open off"]
    task = Task(0, ("own",), "http://own.localhost/", "x", {"eval_types": []})
    with RealWeb(rude, contexts=len(names), step_timeout_seconds=3) as web:
        pages = web.reset([task] * len(names))
        steps = web.step([click_on(page, name) for page, name in zip(pages, names, strict=True)])
        for name, step in zip(names, steps, strict=True):
            error, title = RUDENESS[name]
            assert step.observation.last_action_error.startswith(error), (name, step.observation.last_action_error)
            assert (step.observation.title, step.truncated) == (title, False), name
        assert "off.localhost" not in rude.asked


def test_start_pages_that_do_not_open_end_their_own_episodes_only(rude):
    tasks = [rude.task(path) for path in ("/", "/never", "/trickle", "/file", "/off", "/dialogs")]
    tasks.append(rude.task(port=rude.unbound.getsockname()[1]))
    with RealWeb(step_timeout_seconds=3) as web:
        pages = web.reset(tasks)
        assert [page.title for page in pages] == ["Rude", "", "", "", "", "ok", ""]
        assert "dismissed a dialog: 1; dismissed a dialog: 2" in pages[5].last_action_error
        reasons = ("no answer within 3", "no answer within 3", "Download", UNREACHED, "CONNECTION_REFUSED")
        for page, reason in zip([*pages[1:5], pages[6]], reasons, strict=True):
            assert "did not open: " in page.last_action_error and reason in page.last_action_error
        steps = web.step([click_on(pages[0], "Tab")] + ["go_back"] * 6)
        assert [s.truncated for s in steps] == [False, True, True, True, True, False, True]
        assert all(s.info["error"] == p.last_action_error for s, p in zip(steps, pages, strict=True) if s.truncated)
        assert web.reset(tasks[:1])[0].title == "Rude"


def test_what_one_episode_leaves_half_done_does_not_reach_the_next(rude):
    """A guarded page, open tabs, and a tab that is still to come: each in a context that is used again or replaced."""
    tasks = [Task(0, ("own",), "http://own.localhost/", "x", {"eval_types": []})] * 3
    with RealWeb(rude, contexts=3, step_timeout_seconds=8) as web:
        page, contexts = web.reset(tasks)[0], [episode.context for episode in web.episodes]
        steps = web.step([click_on(page, name) for name in ("Guard", "Tab", "Late tab")])
        assert "did not load within" in steps[2].observation.last_action_error
        pages = web.reset(tasks)
        assert [(p.title, p.other_tabs, p.last_action_error) for p in pages] == [("Rude", (), "")] * 3
        assert [e.context is c for e, c in zip(web.episodes, contexts, strict=True)] == [True, True, False]


def test_a_click_waits_for_its_own_page_though_the_one_before_is_still_loading(rude):
    with RealWeb(rude, contexts=1) as web:
        page = web.reset([Task(0, ("own",), "http://own.localhost/busy", "x", {"eval_types": []})])[0]
        assert web.step([click_on(page, "Slow")])[0].observation.title == "slow"


def test_a_load_is_over_when_its_own_page_is_there_and_not_before():
    class Session:
        def __init__(self):
            self.handlers = {}

        def on(self, event, handler):
            self.handlers[event] = handler

        async def send(self, *_):
            return {}

    async def play():
        session = Session()
        navigation = Navigation(session, "main")
        await navigation.watch()

        def tell(event, **facts):
            session.handlers[event]({"frameId": "main", **facts})
            return navigation.pending

        assert tell("Page.frameStartedNavigating", loaderId="2") == "2"
        assert tell("Page.lifecycleEvent", loaderId="1", name="DOMContentLoaded") == "2"  # the page before it
        assert tell("Network.loadingFailed", requestId="9", errorText="net::ERR_ABORTED") == "2"  # one of its pictures
        assert tell("Page.lifecycleEvent", loaderId="2", name="commit") == "2"
        assert tell("Page.lifecycleEvent", loaderId="2", name="DOMContentLoaded") == ""
        assert tell("Page.frameStartedNavigating", loaderId="3", frameId="inner") == ""
        tell("Page.frameStartedNavigating", loaderId="4")
        assert tell("Page.downloadWillBegin") == ""
        tell("Page.frameStartedNavigating", loaderId="5")
        assert tell("Network.loadingFailed", requestId="5", errorText="net::ERR_ABORTED") == "5"
        await asyncio.wait_for(navigation.over(), 1)  # an empty answer
        assert tell("Page.frameRequestedNavigation", disposition="newTab") == ""
        assert tell("Page.frameRequestedNavigation", disposition="currentTab")
        await asyncio.wait_for(navigation.over(), 5)  # it never begins, and is not waited for for ever

    asyncio.run(play())


def test_a_proxy_of_the_environment_is_not_asked_for_replicas(site, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with RealWeb(site, contexts=1) as web:
        assert web.reset([task("/two")])[0].title == "two"


def test_addresses_that_are_none_are_refused(real):
    real.reset([task("/two")])
    for url in ("http://[", "javascript:alert(1)", "file:///etc/passwd", "http://sink.test:99999/", "data:text/html,x"):
        step = real.step([f"goto [{url}]"])[0]
        assert "host not allowed" in step.observation.last_action_error and step.observation.title == "two", url
