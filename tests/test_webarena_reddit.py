"""The forum site of WebArena's ground: its addresses, listings, threads, votes and forms, and what they refuse."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager

import pytest
from flask import Flask
from lxml.html import HtmlElement, document_fromstring
from werkzeug.test import Client

from dynaweb_lite.accessibility import HtmlReader, page_lines
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.webarena.generator import KINDS, generate_tasks
from dynaweb_lite.sites.webarena.reddit.app import make_app
from dynaweb_lite.sites.webarena.reddit.content import NOW, USER, make_database
from dynaweb_lite.sites.webarena.reddit.queries import HISTORY_PAGE, PAGE, list_submissions, search, thread
from dynaweb_lite.sites.webarena.reddit.tasks import TEMPLATES
from dynaweb_lite.sites.webarena.reddit.text import ago, counted, host, picture
from dynaweb_lite.sites.webarena.reddit.words import slugify
from dynaweb_lite.verify import play
from dynaweb_lite.webarena_tasks import SOLUTIONS

HOST = "http://forum.test"
BOOKSHOP = "/f/books/59421/friendly-reminder-bookshop-org-exists"


class Visitor:
    """A client with a database of its own, and pages as documents."""

    def __init__(self, state: dict, app: Flask, seeded: bytes):
        state["db"] = sqlite3.connect(":memory:", check_same_thread=False)
        state["db"].deserialize(seeded)
        state["db"].row_factory = sqlite3.Row
        self.client = Client(app)

    def get(self, url: str, status: int = 200) -> HtmlElement:
        response = self.client.get(url, base_url=HOST, follow_redirects=True)
        assert response.status_code == status, url
        return document_fromstring(response.text)

    def post(self, url: str, status: int = 302, **fields: str):
        response = self.client.post(url, base_url=HOST, data=fields)
        assert response.status_code == status, (url, response.text)
        return response


@pytest.fixture(scope="module")
def site() -> tuple[dict, Flask, bytes]:
    state: dict = {}

    @contextmanager
    def database():
        with state["db"]:
            yield state["db"]

    return state, make_app(database), make_database(0).serialize()


@pytest.fixture
def visitor(site) -> Visitor:
    return Visitor(*site)


@pytest.fixture(scope="module")
def db() -> sqlite3.Connection:
    made = make_database(0)
    made.row_factory = sqlite3.Row
    return made


def text(document, css: str = "main") -> str:
    return " ".join(" ".join(e.text_content() for e in document.cssselect(css)).split())


def titles(document) -> list[str]:
    return [a.text for a in document.cssselect(".submission__link")]


def test_slugs_are_cut_after_the_last_word_that_fits():
    assert slugify("D'oh! 2 years") == "d-oh-2-years"
    assert slugify("I just finished reading The Hobbit to my 6 year old daughter and") == (
        "i-just-finished-reading-the-hobbit-to-my-6-year-old-daughter"
    )
    assert slugify("x" * 80) == "x" * 60 and slugify("???") == "-"


def test_times_counts_and_hosts_as_written():
    assert [ago(NOW - s) for s in (5, 60, 7200, 90_000, 40 * 86_400, 800 * 86_400)] == [
        "just now", "1 minute ago", "2 hours ago", "1 day ago", "1 month ago", "2 years ago",
    ]  # fmt: skip
    assert counted(1, "point") == "1 point" and counted(-1, "point") == "-1 points"
    assert host("https://a.example/b") == "a.example" and host("/submission_images/a.jpg") == ""
    assert picture("/a.jpg") == picture("/a.jpg") != picture("/b.jpg")


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_content_is_a_function_of_the_seed_and_small(seed):
    made, again = make_database(seed).serialize(), make_database(seed).serialize()
    assert made == again and len(made) < 500_000
    db = make_database(seed)
    counts = [db.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in ("forum", "submission", "comment")]
    assert counts[0] >= 25 and counts[1] >= 250 and counts[2] >= 400
    assert db.execute("SELECT COUNT(DISTINCT title) FROM submission").fetchone()[0] == counts[1]
    late = "SELECT COUNT(*) FROM comment c JOIN comment p ON p.id = c.parent_id WHERE c.created < p.created"
    assert db.execute(late).fetchone()[0] == 0
    assert db.execute("SELECT COUNT(*) FROM comment WHERE created > ?", (NOW,)).fetchone()[0] == 0


def test_other_seeds_have_no_fact_of_webarena():
    names = {row[0] for row in make_database(1).execute("SELECT name FROM forum")}
    assert names.isdisjoint(row[0] for row in make_database(0).execute("SELECT name FROM forum"))
    assert make_database(1).execute("SELECT COUNT(*) FROM submission WHERE id = 59421").fetchone()[0] == 0


def test_every_address_in_the_checks_of_the_real_tasks_is_there(visitor):
    for url in (
        BOOKSHOP,
        "/f/books/124260/adults-reading-to-each-other-out-loud",
        "/f/DIY/119019/how-can-i-bring-an-hdmi-cable-from-my-pc-downstairs-to-my-tv",
        "/f/gadgets/19459/a-custom-gaming-pc-built-inside-a-vintage-1940s-motorola",
        "/f/books/81371/the-letters-of-t-s-eliot-to-emily-hale-that-were-kept-sealed",
        "/f/books/59447/appalachian-prison-book-project-seeks-notebook-donations-the",
        "/f/EarthPorn/98297/2-years-later-this-is-still-one-of-the-most-incredible",
        "/f/UpliftingNews/16087/same-sex-marriage-is-now-legal-in-all-of-mexico-s-states",
        "/f/television/135201/star-trek-starfleet-academy-series-from-alex-kurtzman-and",
    ):
        document = visitor.get(url)
        assert slugify(text(document, "h1.submission__title")) == url.rsplit("/", 1)[1]
    assert "Manager of the website" in text(visitor.get("/f/books/59421/-/comment/1235250"))


@pytest.mark.parametrize(
    "url",
    ["/", "/new", "/subscribed", "/forums", "/forums/all", "/f/books", "/f/books/top?t=all", BOOKSHOP, "/submit/nyc",
     f"/user/{USER}", f"/user/{USER}/comments", "/search?q=books", "/notifications", "/create_forum"],
)  # fmt: skip
def test_pages_fit_into_an_observation_and_name_their_controls(visitor, url):
    lines = [element for element, _ in page_lines(HtmlReader(visitor.get(url)).tree())]
    assert 9 <= len(lines) <= 60
    assert all(e.name for e in lines if e.role in ("link", "button", "textbox", "searchbox", "combobox", "heading"))


def test_orders_of_a_listing(db):
    key = {"new": "created", "top": "score", "most_commented": "comments"}
    for sort, column in key.items():
        values = [row[column] for row in list_submissions(db, sort, "all", 1, forum="books").rows]
        assert values == sorted(values, reverse=True) and len(values) == PAGE
    recent = list_submissions(db, "top", "week", 1).rows
    assert recent and all(row["created"] >= NOW - 7 * 86_400 for row in recent)
    split = list_submissions(db, "controversial", "all", 1).rows[0]
    assert split["downs"] > 0.2 * split["ups"]
    assert list_submissions(db, "hot", "day", 1).rows[0]["score"] > 1000


def test_pages_of_a_listing_show_each_submission_once(visitor, db):
    seen, number = [], 1
    while found := titles(visitor.get(f"/f/books/new?page={number}")):
        seen += found
        number += 1
    assert (
        len(seen) == len(set(seen)) == db.execute("SELECT COUNT(*) FROM submission WHERE forum='books'").fetchone()[0]
    )
    assert "There is nothing here" in text(visitor.get(f"/f/books/new?page={number}"))
    assert titles(visitor.get("/f/books/new?page=-3")) == titles(visitor.get("/f/books/new?page=x")) == seen[:PAGE]


def test_a_span_of_time_stays_with_the_pages(visitor):
    document = visitor.get("/f/books/top?t=all")
    following = document.cssselect(".pages a")[0].get("href")
    assert following == "?t=all&page=2"
    assert "There is nothing here" in text(visitor.get("/f/history/top"))


def test_forum_names_know_no_case(visitor):
    response = visitor.client.get("/f/earthporn/top?t=all", base_url=HOST)
    assert response.status_code == 302 and response.location.endswith("/f/EarthPorn/top?t=all")


@pytest.mark.parametrize(
    "url", ["/nothing", "/f/nothing", "/f/books/nonsense", "/f/books/1/x", "/f/nyc/59421/x", "/user/nobody",
            "/f/books/59421/-/comment/7", "/subscribed/worst", "/submission_images/x.jpg", "/submit/nothing"]
)  # fmt: skip
def test_unknown_addresses_are_pages_too(visitor, url):
    document = visitor.get(url, status=404)
    assert text(document, "h1") == "Page not found" and document.cssselect("header a")


def test_votes_count_once_and_can_be_taken_back(visitor):
    def seen() -> tuple[str, str]:
        document = visitor.get(BOOKSHOP)
        form = document.cssselect("div.submission__vote form")[0]
        return form.get("class"), text(form, ".vote__net-score")

    assert seen() == ("vote vote--user-none", "12406")
    for _ in range(2):
        visitor.post("/sv/59421", choice="1")
        assert seen() == ("vote vote--user-upvoted", "12407")
    visitor.post("/sv/59421", choice="-1")
    assert seen() == ("vote vote--user-downvoted", "12405")
    visitor.post("/sv/59421", choice="0")
    assert seen() == ("vote vote--user-none", "12406")
    for number, choice, status in ((59421, "5", 400), (59421, "", 400), (4, "1", 404)):
        visitor.post(f"/sv/{number}", status, choice=choice)


def test_comments_are_voted_on(visitor):
    visitor.post("/cv/1235250", choice="-1")
    assert text(visitor.get("/f/books/59421/-/comment/1235250"), ".vote__net-score") == "411"
    visitor.post("/cv/3", 404, choice="1")


def test_a_form_returns_to_the_page_that_it_came_from_and_nowhere_else(visitor):
    assert visitor.post("/sv/59421", choice="1", next="/f/books?page=2").location == "/f/books?page=2"
    for url in ("http://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example", ""):
        assert visitor.post("/sv/59421", choice="1", next=url).location == BOOKSHOP


def test_subscriptions_stand_in_the_sidebar(visitor):
    def subscribers() -> int:
        return int(text(visitor.get("/f/space"), "main .soft").split()[0])

    before = subscribers()
    assert "space" not in text(visitor.get("/"), "#sidebar > section")
    visitor.post("/f/space/subscribe")
    visitor.post("/f/space/subscribe")
    assert "space" in text(visitor.get("/"), "#sidebar > section") and subscribers() == before + 1
    assert "Unsubscribe" in text(visitor.get("/f/space"), ".subscribe-button")
    visitor.post("/f/space/unsubscribe")
    assert subscribers() == before
    for name in ("todayilearned", "explainlikeimfive", "dataisbeautiful"):
        visitor.post(f"/f/{name}/unsubscribe")
    assert "not subscribed to any forum" in text(visitor.get("/"), "#sidebar")
    assert "There is nothing here" in text(visitor.get("/subscribed"))


def submit(visitor: Visitor, status: int = 302, **fields: str):
    return visitor.post("/submit", status, **{f"submission[{key}]": value for key, value in fields.items()})


def test_submitting_a_text_and_a_link(visitor, db):
    nyc = str(db.execute("SELECT id FROM forum WHERE name = 'nyc'").fetchone()[0])
    location = submit(visitor, title=" is  car necessary <b>?", body="one\r\ntwo", forum=nyc).location
    assert location == "/f/nyc/135202/is-car-necessary-b"
    document = visitor.get(location)
    assert text(document, "h1") == "is car necessary <b>?"
    assert [p.text for p in document.cssselect(".submission__body p")] == ["one", "two"]
    assert document.cssselect("form.vote")[0].get("class") == "vote vote--user-upvoted"
    assert titles(visitor.get("/f/nyc/new"))[0] == "is car necessary <b>?"
    location = submit(visitor, title="A link", url="http://git.test/a/b", forum=nyc).location
    assert "http://git.test/a/b" in text(visitor.get(location), ".submission__inner")
    assert titles(visitor.get(f"/user/{USER}/submissions"))[:2] == ["A link", "is car necessary <b>?"]


def test_what_a_submission_lacks_is_said_and_nothing_is_lost(visitor):
    page = document_fromstring(submit(visitor, 200, title=" ", body="kept", url="no url").text)
    assert len(page.cssselect(".message.error")) == 3 and text(page, "#submission_body") == "kept"
    page = document_fromstring(submit(visitor, 200, title="x" * 301, forum="10001").text)
    assert text(page, ".message.error") == "The title has more than 300 characters."
    chosen = visitor.get("/submit/nyc").cssselect("#submission_forum option[selected]")
    assert [option.text for option in chosen] == ["nyc"]


def test_only_ones_own_submissions_are_edited_and_deleted(visitor):
    url = "/f/MachineLearning/1"
    page = visitor.get(f"{url}/-/edit")
    assert text(page, "#submission_body") == "Crazy device for ML!" and not page.cssselect("#submission_url")
    fields = {"submission[title]": "Nvidia RTX 4090", "submission[body]": "Crazy device for ML!\nEDIT: more"}
    assert visitor.post(f"{url}/-/edit", **fields).location == f"{url}/nvidia-rtx-4090"
    page = visitor.get(f"{url}/")
    assert "EDIT: more" in text(page, ".submission__body") and "was updated" in text(page, ".message")
    assert "was updated" not in text(visitor.get(f"{url}/"))
    visitor.post(f"{url}/-/edit", 200, **{"submission[title]": ""})
    assert "was deleted" in text(visitor.get(visitor.post(f"{url}/-/delete").location))
    visitor.get(f"{url}/", 404)
    visitor.get("/f/books/59421/-/edit", 403)
    visitor.post("/f/books/59421/-/delete", 403)


def test_editing_a_link_keeps_its_address(visitor):
    fields = {"submission[title]": "Renamed", "submission[url]": "", "submission[body]": "Seen it"}
    location = visitor.post("/f/television/134868/-/edit", **fields).location
    assert location == "/f/television/134868/renamed"
    assert "thequarterly.example" in text(visitor.get(location), ".submission__inner")


def test_a_new_comment_stands_first_and_a_reply_below_what_it_answers(visitor):
    visitor.post("/f/books/59421/-/comment", **{"reply_to_submission_59421[comment]": "I agree"})
    page = visitor.get(BOOKSHOP)
    assert text(page.cssselect(".comment__body")[0], "p") == "I agree" and text(page, "h2") == "6 comments"
    reply = {"reply_to_comment_1235250[comment]": "thanks!"}
    assert visitor.post("/f/books/59421/-/comment/1235250", **reply).location.endswith("/-/comment/1235250")
    assert "answers bookshop_manager" in text(visitor.get("/f/books/59421/-/comment/1235250"), ".comments")
    visitor.post("/f/books/59421/-/comment", **{"reply_to_submission_59421[comment]": " \n "})
    assert "cannot be empty" in text(visitor.get(BOOKSHOP), ".message")


def test_own_comments_are_edited_and_deleted(visitor):
    visitor.post("/f/books/59421/-/comment", **{"reply_to_submission_59421[comment]": "first"})
    link = visitor.get(BOOKSHOP).cssselect("a[href$='/edit']")[0].get("href")
    comment = link.removesuffix("/edit")
    visitor.post(link, 200, **{"comment[comment]": ""})
    visitor.post(link, **{"comment[comment]": "second"})
    assert "second" in text(visitor.get(comment)) and "edited" in text(visitor.get(comment))
    visitor.post(comment, **{f"reply_to_comment_{comment.rsplit('/', 1)[1]}[comment]": "to myself"})
    visitor.post(f"{comment}/delete")
    page = text(visitor.get(BOOKSHOP))
    assert "[deleted]" in page and "to myself" in page and "second" not in page
    visitor.post("/f/books/59421/-/comment/1235250/delete", 403)


def test_long_threads_have_pages(visitor, db):
    row = db.execute("SELECT * FROM listing ORDER BY comments DESC LIMIT 1").fetchone()
    url = f"/f/{row['forum']}/{row['id']}/"
    bodies = [len(visitor.get(f"{url}?page={n}").cssselect(".comment")) for n in range(1, 5)]
    assert sum(bodies) == row["comments"] and bodies[0] == 6


def test_a_thread_reads_from_top_to_bottom():
    rows = [{"id": n, "parent_id": p, "author": f"a{n}"} for n, p in ((5, None), (4, 2), (3, 4), (2, None), (1, 2))]
    assert [(r["id"], r["depth"], r["answers"]) for r in thread(rows)] == [
        (5, 0, ""), (2, 0, ""), (4, 1, "a2"), (3, 2, "a4"), (1, 1, "a2"),
    ]  # fmt: skip
    assert [r["id"] for r in thread(rows, 2)] == [4, 3, 1]


def test_search_wants_every_word_and_takes_signs_as_they_are(visitor, db):
    first = search(db, "costume CONTEST", 1).rows[0]
    assert first[0] == "submission" and first[1]["title"] == "The winner of our town's costume contest"
    kinds = [kind for number in range(1, 9) for kind, _ in search(db, "patience", number).rows]
    assert kinds == sorted(kinds, reverse=True) and set(kinds) == {"submission", "comment"}
    assert not search(db, "100%_sure\\", 1).rows and not search(db, " ", 1).rows
    many = search(db, "the", 1)
    assert many.has_next and len(many.rows) == HISTORY_PAGE
    assert "Nothing holds all" in text(visitor.get("/search?q=zzzz"))
    assert "Write a word" in text(visitor.get("/search?q="))
    assert visitor.get("/search?q=a%26b").cssselect("input[name=q]")[0].get("value") == "a&b"


def test_people_have_histories_and_the_user_a_biography(visitor, db):
    shown = text(visitor.get("/user/dusty_anchor/comments")) + text(visitor.get("/user/dusty_anchor/comments?page=2"))
    assert shown.count("-4 points") == 1 and "9 comments" in shown
    page = visitor.get(f"/user/{USER}")
    assert "Here for series" in text(page, ".user-bio__biography")
    edit = f"/user/{USER}/edit_biography"
    visitor.post(edit, 200, **{"user_biography[biography]": "x" * 301})
    visitor.post(edit, **{"user_biography[biography]": "I am a robot"})
    assert text(visitor.get(f"/user/{USER}"), ".user-bio__biography") == "I am a robot"
    visitor.get("/user/dusty_anchor/edit_biography", 404)


def create(visitor: Visitor, status: int = 302, **fields: str):
    return visitor.post("/create_forum", status, **{f"forum[{key}]": value for key, value in fields.items()})


def test_forums_are_created_and_edited_by_their_makers(visitor):
    made = {"name": "Cyberpunk", "title": "Cyberpunk", "description": "Welcome", "sidebar": "Games\r\nBooks"}
    assert create(visitor, **made).location == "/f/Cyberpunk"
    assert "There is nothing here" in text(visitor.get("/f/Cyberpunk"))
    assert "Cyberpunk" in text(visitor.get("/"), "#sidebar")
    page = visitor.get("/f/Cyberpunk/edit")
    assert page.cssselect("#forum_description")[0].get("value") == "Welcome"
    assert text(page, "#forum_sidebar") == "Games Books"
    visitor.post("/f/Cyberpunk/edit", 200, **{"forum[title]": "", "forum[description]": "x"})
    visitor.post("/f/Cyberpunk/edit", **{"forum[title]": "New title", "forum[description]": "x"})
    assert text(visitor.get("/f/Cyberpunk"), "h1") == "New title"
    visitor.get("/f/books/edit", 403)


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"name": "BOOKS"}, "already"), ({"name": "a b"}, "letters"), ({"name": "ab"}, "letters"),
     ({"name": "good", "title": ""}, "needs a title"), ({"name": "good", "description": ""}, "needs a description"),
     ({"name": "good", "sidebar": "x" * 1501}, "1500 characters")],
)  # fmt: skip
def test_what_is_wrong_with_a_forum_is_said(visitor, fields, message):
    response = create(visitor, 200, **({"title": "T", "description": "D"} | fields))
    assert message in text(document_fromstring(response.text), ".message.error")
    visitor.get("/f/good", 404)


def test_notifications_are_seen_once(visitor):
    assert len(visitor.get("/notifications").cssselect("article")) == 3
    visitor.post("/notifications/clear")
    assert "no new notifications" in text(visitor.get("/notifications"))
    assert "Notifications (0)" in text(visitor.get("/"), "header")


def test_pictures_can_be_looked_at(visitor):
    page = visitor.get("/f/pics/61068/")
    link = page.cssselect(".submission__inner a.submission__link")[0]
    assert link.text == HOST + link.get("href")
    assert page.cssselect("img")[0].get("src").startswith("data:image/svg+xml,")
    assert "costume contest" in visitor.get(link.get("href")).cssselect("img")[0].get("alt")


def test_the_templates_have_every_kind_and_their_experts_succeed():
    assert {t.kind for t in TEMPLATES} == set(KINDS) and sum(t.held_out for t in TEMPLATES) == 2
    tasks = generate_tasks(1, sites=("reddit",))
    first = {task.extra["template"]: task for task in reversed(tasks)}
    counts = [sum(task.extra["template"] == name for task in tasks) for name in first]
    assert len(first) == len(TEMPLATES) and min(counts) >= 8
    chosen = list(first.values())
    web = DirectWeb(SiteServer(1, ground="webarena"))
    episodes, errors = play(chosen, [task.extra["script"] for task in chosen], web)
    assert not errors and [e.reward for e in episodes] == [1.0] * len(chosen)


def test_every_task_says_what_is_simplified_and_every_answer_what_it_rests_on():
    read = json.loads((SOLUTIONS / "reddit.json").read_text(encoding="utf-8"))
    assert len(read["tasks"]) >= 28 and all(row["note"] and row["mistake"] for row in read["tasks"].values())
    assert all(read["tasks"][number]["reads"] for number in ("27", "29", "30", "67", "69"))
