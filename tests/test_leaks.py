"""Contexts side by side and one after the other: nothing that one writes is ever seen by another."""

import asyncio
import random
import re
import sqlite3
import threading
from collections import Counter

import pytest
from flask import Flask
from waitress.server import create_server

from dynaweb_lite.browser import RealWeb
from dynaweb_lite.episode import Episode
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.content import DATABASES
from dynaweb_lite.tasks import Task

CONTEXTS, ROUNDS, WRITES = 16, 4, 32  # 16 × 4 × 32 = 2,048 writes, a reset of all contexts after each round
SHOP, FORUM, OWN = "http://shop.test", "http://forum.test", "http://own.localhost"
ITEMS = range(1, 6)
"""Products and posts that are written to; few, so that contexts write to the same ones."""

SEND = """async calls => {
  for (const [url, form] of calls)
    await fetch(url, {method: "POST", body: new URLSearchParams(form), redirect: "manual"});
}"""
READ = "urls => Promise.all(urls.map(url => fetch(url).then(answer => answer.text())))"

STORAGE = {
    "localStorage": "localStorage.setItem(mark, 1)",
    "sessionStorage": "sessionStorage.setItem(mark, 1)",
    "cookie": "document.cookie = mark + '=1; max-age=999'",
    "name": "window.name += ' ' + mark",
    "history": "history.pushState(0, '', '/?' + mark)",
    "cache": "await (await caches.open(mark)).put('/', new Response(mark))",
    "database": "await new Promise(done => {"
    " indexedDB.open(mark).onsuccess = event => done(event.target.result.close()) })",
    "files": "await (await navigator.storage.getDirectory()).getFileHandle(mark, {create: true})",
    "worker": "await navigator.serviceWorker.register('/worker.js', {scope: '/' + mark})",
}
"""Where a script can leave something, and how."""
STORED = """async () => {
  const workers = await navigator.serviceWorker.getRegistrations();
  const found = [
    ...Object.keys(localStorage), ...Object.keys(sessionStorage), ...window.name.split(" "), ...await caches.keys(),
    ...document.cookie.split("; ").map(pair => pair.split("=")[0]),
    ...(await indexedDB.databases()).map(database => database.name), ...workers.map(w => w.scope.split("/").pop()),
  ];
  for await (const name of (await navigator.storage.getDirectory()).keys()) found.push(name);
  if (history.length > 1) found.push("mark-history");
  return found.filter(mark => mark.startsWith("mark-"));
}"""


class Pages:
    """In place of the replicas: one page, on a host where browsers offer all that they have."""

    hosts = ["own.localhost", "inner.localhost"]

    def __init__(self):
        self.app, self.server, self.port = Flask(__name__), None, 0

        @self.app.get("/")
        def home():
            return "<title>Own</title><h1>Own</h1>"

        @self.app.get("/framed")
        def framed():
            return "<title>Framed</title><iframe src='http://inner.localhost/'></iframe>"

        @self.app.get("/worker.js")
        def worker():
            return "onfetch = () => {}", {"Content-Type": "text/javascript"}

    def start(self):
        if self.server is None:
            self.server = create_server(self.app, host="127.0.0.1", port=0, threads=8)
            self.port = self.server.effective_port
            threading.Thread(target=self.server.run, daemon=True).start()
        return self

    def drop(self, session):
        pass


class Shared(SiteServer):
    """Replicas with the fault that the check is for: all sessions are one, and a reset forgets none."""

    def __init__(self):
        super().__init__()
        for sessions in self.sessions.values():
            sessions._get = lambda session, get=sessions._get: get("one")
            sessions.drop = lambda session: None


def task(url):
    return Task(url, ("sink",), url, "x", {"eval_types": ["url_match"], "reference_url": url})


def in_pages(web, script, arguments):
    """The script's value in the page of each episode, all at once."""

    async def work():
        calls = zip(web.episodes, arguments, strict=True)
        return await asyncio.gather(*(episode.tab.page.evaluate(script, a) for episode, a in calls))

    return web.worker.run(work())


def rows(site, query):
    db = DATABASES[site](0)
    db.row_factory = sqlite3.Row
    return {row["id"]: row for row in db.execute(query)}


PRODUCTS = rows("shopping", "SELECT id, slug FROM product")
POSTS = rows("reddit", "SELECT id, slug, forum FROM post")


def post_path(number):
    return f"/f/{POSTS[number]['forum']}/{number}/{POSTS[number]['slug']}"


def random_write(site, rng, mark, state):
    """A write on a replica as (address, form); `state`, what its context must then hold, is brought up to date."""
    number = rng.choice(ITEMS)
    match rng.choice(["cart", "cart", "remove", "wish"] if site == SHOP else ["comment", "comment", "vote"]):
        case "cart":
            state["cart", number] += 1
            return f"/checkout/cart/add/{number}", {}
        case "remove":
            state["cart", number] = 0
            return f"/checkout/cart/delete/{number}", {}
        case "wish":
            state["wish", number] = 1
            return f"/wishlist/index/add/{number}", {}
        case "vote":
            state["vote", number] = 1 - state["vote", number]
            return f"/sv/{number}", {"choice": "up"}
    state[f"comment {mark}", number] += 1
    return f"{post_path(number).rsplit('/', 1)[0]}/-/comment", {"comment": mark}


def read_shop(web):
    """What each context holds in the shop, in the words of `random_write`."""
    slugs, states = {row["slug"]: number for number, row in PRODUCTS.items()}, []
    for cart, wishes in in_pages(web, READ, [["/checkout/cart/", "/wishlist/"]] * CONTEXTS):
        found = re.findall(r"<span>(\d+) items.*?cart/delete/(\d+)", cart, re.DOTALL)
        state = Counter({("cart", int(number)): int(count) for count, number in found})
        wished = re.findall(r'<div><a href="/([\w-]+)\.html">', wishes)
        states.append(state + Counter(("wish", slugs[slug]) for slug in wished))
    return states


def read_forum(web):
    states = []
    for pages in in_pages(web, READ, [[post_path(number) for number in ITEMS]] * CONTEXTS):
        state = Counter()
        for number, page in zip(ITEMS, pages, strict=True):
            state["vote", number] += "Retract" in page
            state.update((f"comment {mark}", number) for mark in re.findall(r"mark-[\w-]+", page))
        states.append(+state)
    return states


def leaks_after(server):
    """Write on the replicas in all contexts at once; count what a context then holds that it should not, or lacks."""
    rng, leaks, writes = random.Random(0), 0, 0
    with RealWeb(server, contexts=CONTEXTS, step_timeout_seconds=60) as web:
        first = list(web.episodes) or None
        for number in range(ROUNDS):
            for site, read in ((SHOP, read_shop), (FORUM, read_forum)):
                web.reset([task(site)] * CONTEXTS)
                leaks += sum(1 for state in read(web) if state)  # nothing has been written since the reset
                states = [Counter() for _ in range(CONTEXTS)]
                for _ in range(2):  # two turns, so that the contexts' writes mix
                    calls = [
                        [random_write(site, rng, f"mark-{i}-{number}", states[i]) for _ in range(WRITES // 4)]
                        for i in range(CONTEXTS)
                    ]
                    in_pages(web, SEND, calls)
                    writes += sum(map(len, calls))
                leaks += sum((+mine) != found for mine, found in zip(states, read(web), strict=True))
        assert [e.context for e in web.episodes] == [e.context for e in first]  # all were reused
    return leaks, writes


def test_sixteen_contexts_write_2000_times_and_see_only_their_own():
    assert leaks_after(SiteServer()) == (0, CONTEXTS * ROUNDS * WRITES)


def test_the_check_finds_leaks_of_a_server_that_mixes_sessions(monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROUNDS", 1)
    leaks, _ = leaks_after(Shared())
    assert leaks >= CONTEXTS


def stored_after(server, resets=3):
    """What contexts still hold of earlier episodes after each reset, by kind of storage; and which lost their own."""
    kept, lost = Counter(), Counter()
    with RealWeb(server, contexts=4) as web:
        for turn in range(resets):
            pages = web.reset([task(OWN + "/")] * 4)
            assert [page.title for page in pages] == ["Own"] * 4
            for marks in in_pages(web, STORED, [None] * 4):
                kept.update({mark.split("-")[1] for mark in marks})
            for kind, script in STORAGE.items():
                in_pages(web, f"async mark => {{ {script} }}", [f"mark-{kind}-{i}-{turn}" for i in range(4)])
            for i, marks in enumerate(in_pages(web, STORED, [None] * 4)):
                mine = {f"mark-{kind}-{i}-{turn}" for kind in STORAGE} - {f"mark-history-{i}-{turn}"}
                lost.update(kind for kind in mine if kind not in marks)
                kept.update("other" for mark in marks if mark not in mine | {"mark-history"})
    return kept, lost


def test_reused_contexts_keep_nothing_that_scripts_can_store():
    assert stored_after(Pages()) == (Counter(), Counter())


@pytest.mark.parametrize("what", ["clear", "forget"])
def test_the_check_finds_what_is_not_cleared(what, monkeypatch):
    async def nothing(*_):
        pass

    async def only_cookies(episode):
        await episode.context.clear_cookies()

    if what == "clear":
        monkeypatch.setattr(Episode, "clear", nothing)
    else:
        monkeypatch.setattr(Episode, "clear", only_cookies)
    kept, _ = stored_after(Pages(), resets=2)
    assert set(kept) >= {*STORAGE, "other"} - {"history"} - ({"cookie"} if what == "forget" else set())


def test_a_context_whose_pages_had_another_sites_frame_in_them_is_not_used_again():
    """What such a frame stores, browsers keep apart for each page that it stands in; clearing does not reach it."""
    with RealWeb(Pages(), contexts=1) as web:
        for path, is_same in (("/", True), ("/framed", False), ("/", True)):
            before = web.reset([task(OWN + path)]) and web.episodes[0].context
            web.reset([task(OWN + "/")])
            assert (web.episodes[0].context is before) == is_same


SCRIPTED = """<title>before</title><script>document.title = 'ran'</script>
<button onclick="document.title = 'ran'">Run</button>"""


def test_replicas_tell_browsers_to_run_no_scripts():
    """So that clearing cookies is enough for them."""
    server, app = SiteServer(), Flask(__name__)
    app.add_url_rule("/", "home", lambda: SCRIPTED)
    server._apps["shop.test"] = app
    assert server.is_script_free
    with RealWeb(server, contexts=1) as web:
        page = web.reset([task(SHOP)])[0]
        assert page.title == "before"
        assert web.step([f"click [{page.find('button', 'Run').id}]"])[0].observation.title == "before"
