"""The replica of GitLab: addresses, lists, forms and what they refuse, rights, content by seed."""

import random
import re

import pytest
from lxml import html
from markupsafe import escape
from werkzeug.test import Client

from dynaweb_lite.accessibility import HtmlReader, read_page
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.webarena.gitlab.content import make_database
from dynaweb_lite.sites.webarena.gitlab.pages import markdown, slug, valid_date
from dynaweb_lite.sites.webarena.gitlab.tasks import TEMPLATES

BASE = "http://git.test"
A11Y = "/a11yproject/a11yproject.com"


class Visitor:
    """A browser's session: pages as lxml documents, forms by POST."""

    def __init__(self, server: SiteServer, session: str):
        self.client = Client(server.app)
        self.client.set_cookie("dynaweb_session", session, domain="git.test")

    def get(self, url: str, status: int = 200) -> html.HtmlElement:
        response = self.client.get(url, base_url=BASE, follow_redirects=True)
        assert response.status_code == status, (url, response.status_code)
        self.url = response.request.path
        self.query = response.request.query_string.decode()
        return html.document_fromstring(response.text or "<p></p>")

    def post(self, url: str, status: int = 303, /, **data) -> str:
        """Sends a form; returns where it leads to, or the page that refuses it."""
        response = self.client.post(url, base_url=BASE, data=data)
        assert response.status_code == status, (url, response.status_code, response.text)
        return response.headers.get("Location", response.text)


@pytest.fixture(scope="module")
def server():
    return SiteServer(0, ground="webarena")


@pytest.fixture
def visitor(server, request):
    return Visitor(server, request.node.name)


def text(element, css: str = "") -> str:
    """The text of an element, or of the first inside it that fits a selector."""
    found = element.cssselect(css)[0] if css else element
    return " ".join(found.text_content().split())


def links(document, css: str) -> list[str]:
    return [" ".join(a.text_content().split()) for a in document.cssselect(css)]


PAGES = f"""/ /dashboard/projects /dashboard/projects/starred /explore /explore/projects /search /search?search=gan
/search?search=e&scope=issues /search?search=e&scope=merge_requests /search?search=e&scope=users /projects/new
/projects/new?form=blank_project /projects/new?form=create_from_template /groups/new /dashboard/groups /explore/groups
/facebook /groups/facebook /groups/facebook/-/group_members /dashboard/issues
/dashboard/issues?assignee_username=byteblaze
/dashboard/merge_requests /dashboard/merge_requests?reviewer_username=byteblaze /dashboard/todos /byteblaze
/users/byteblaze/projects /users/byteblaze/starred /users/byteblaze/followers /users/byteblaze/following /yjlou
/-/profile /-/profile/preferences /-/profile/personal_access_tokens {A11Y} {A11Y}/-/tree/main {A11Y}/-/blob/main/LICENSE
{A11Y}/-/new/main {A11Y}/-/edit/main/LICENSE {A11Y}/-/commits {A11Y}/-/commits/main {A11Y}/-/graphs/main
{A11Y}/-/branches {A11Y}/-/branches/new {A11Y}/-/issues {A11Y}/-/issues/ {A11Y}/-/issues/new {A11Y}/-/issues/1478
{A11Y}/-/issues/1478/edit {A11Y}/-/merge_requests {A11Y}/-/merge_requests/new {A11Y}/-/merge_requests/1071
{A11Y}/-/labels {A11Y}/-/labels/new {A11Y}/-/milestones {A11Y}/-/milestones/new {A11Y}/-/milestones/1
{A11Y}/-/project_members {A11Y}/-/project_members/justinreyes/edit {A11Y}/-/forks/new
/amwhalen/archive-my-tweets/-/tree/github/fork/chtitux/addRssFeed /A11YPROJECT/a11yproject.com""".split()


def test_every_page_fits_an_observation_and_names_its_controls(visitor):
    for url in PAGES:
        page = visitor.get(url)
        seen, _ = read_page(HtmlReader(page).tree(), "", url, 500)
        assert 5 < len(seen.elements) <= 60, url
        assert all(e.name for e in seen.elements if e.role in ("link", "button", "textbox", "combobox", "checkbox")), (
            url
        )


@pytest.mark.parametrize(
    "url",
    f"""/nobody /nobody/nothing {A11Y}/-/tree/nowhere {A11Y}/-/blob/main/nothing.txt {A11Y}/-/raw/main/nothing.txt
    {A11Y}/-/issues/99999 {A11Y}/-/merge_requests/1478 {A11Y}/-/commit/0123456789 {A11Y}/-/milestones/77
    {A11Y}/-/project_members/nobody/edit {A11Y}/-/nothing /users/nobody/followers /groups/nothing/-/group_members
    /users/byteblaze/nothing {A11Y}/-/graphs/nowhere {A11Y}/-/tree/main/nofolder""".split(),
)
def test_what_is_not_there_is_a_404_in_the_sites_look(visitor, url):
    page = visitor.get(url, 404)
    assert "404" in text(page) and links(page, "header a")[0] == "GitLab"


def test_content_is_a_function_of_the_seed_and_facts_belong_to_seed_0():
    databases = {seed: make_database(seed) for seed in (0, 1, 2)}
    names = {seed: {r["path"] for r in db.execute("SELECT path FROM project")} for seed, db in databases.items()}
    assert make_database(1).serialize() == databases[1].serialize()
    assert "a11yproject.com" in names[0] and "a11yproject.com" not in names[1] | names[2] and names[1] != names[2]
    for db in databases.values():
        assert len(db.serialize()) < 500_000
        assert not db.execute("SELECT * FROM item WHERE updated < created OR updated > '2023-06-12 09:00'").fetchall()
        for column in ("author", "assignee", "reviewer"):
            known = f"SELECT {column} FROM item WHERE {column} != '' AND {column} NOT IN (SELECT username FROM user)"
            assert not db.execute(known).fetchall()
        assert not db.execute("SELECT 1 FROM file WHERE commit_id NOT IN (SELECT id FROM git_commit)").fetchall()


def test_projects_are_sorted_filtered_and_paginated(visitor):
    names = []
    for number in range(1, 20):
        page = visitor.get(f"/explore/projects?sort=stars_desc&page={number}")
        names += links(page, ".card > a")
        if not [a for a in links(page, ".pages a") if a == "Next"]:
            break
    stars = [
        int(re.search(r"★ (\d+)", text(card))[1]) for card in visitor.get("/explore?sort=stars_desc").cssselect(".card")
    ]
    assert len(names) == len(set(names)) == 54 and names[0] == "Umano / AndroidSlidingUpPanel"
    assert stars == sorted(stars, reverse=True) and len(stars) == 8
    assert links(visitor.get("/explore?name=awesome-rob"), ".card > a") == ["Agnes Urban / awesome-robots"]
    assert "No project fits" in text(visitor.get("/explore?name=zzz"))
    for odd in ("0", "-3", "999", "x", "9" * 30, "٣"):
        assert visitor.get(f"/explore?page={odd}").cssselect(".card")


def test_issue_filters_use_gitlabs_addresses(visitor):
    base = "/root/metaseq/-/issues/"
    wanted = visitor.get(f"{base}?search=OPT&label_name%5B%5D=question&author_username=&state=")
    assert visitor.query == "search=OPT&label_name%5B%5D=question"  # what a form leaves empty goes
    assert set(links(wanted, ".card > a")) == {
        "How to load the OPT checkpoints on two GPUs?",
        "OPT tokenizer: which files belong to it?",
    }
    assert "Labels:" not in text(visitor.get(f"{base}?label_name%5B%5D=None"), ".cards")
    assert all("Labels:" in text(c) for c in visitor.get(f"{base}?label_name%5B%5D=Any").cssselect(".card"))
    assert "Running on older cards" in text(visitor.get(f"{base}?author_username=jontutcher"))
    assert "no issues to show" in text(visitor.get(f"{base}?search=zzz"))
    dates = {}
    for sort in ("created_date", "created_asc"):
        cards = visitor.get(f"{base}?sort={sort}&state=all").cssselect(".card > a")
        dates[sort] = [int(a.get("href").rsplit("/", 1)[1]) for a in cards]
    assert dates["created_date"] == sorted(dates["created_date"], reverse=True)
    assert dates["created_asc"] == sorted(dates["created_asc"])
    closed = visitor.get(f"{base}?state=closed").cssselect(".card")
    assert closed and all("· closed ·" in text(c) for c in closed)


def test_label_page_leads_to_its_issues(visitor):
    page = visitor.get("/primer/design/-/labels")
    href = next(a.get("href") for a in page.cssselect("a.tag") if a.text == "type: bug 🐞")
    assert href == "/primer/design/-/issues/?label_name%5B%5D=type%3A%20bug%20%F0%9F%90%9E"
    assert "Clarify usage of flash alert" in text(visitor.get(href))


def test_an_issue_is_written_edited_commented_closed_and_escaped(visitor):
    form = {"title": "<b>Bold</b> & more", "description": "# Why\n\n- one\n- <i>two</i>", "assignee": "Roshan Jossey"}
    refused = visitor.post(f"{A11Y}/-/issues", 422, **form | {"title": "  "})
    assert "be blank" in refused and "Roshan Jossey" in refused  # what was typed stays
    assert "No user matches" in visitor.post(f"{A11Y}/-/issues", 422, **form | {"assignee": "nobody"})
    assert "Several users match" in visitor.post(f"{A11Y}/-/issues", 422, **form | {"assignee": "Justin"})
    assert "YYYY-MM-DD" in visitor.post(f"{A11Y}/-/issues", 422, **form | {"due_date": "2030-02-30"})
    form |= {"due_date": "2030-01-03", "labels": ["bug", "unknown"], "milestone_id": "1"}
    here = visitor.post(f"{A11Y}/-/issues", **form)
    page = visitor.get(here)
    assert text(page, "[data-qa-selector=title_content]") == form["title"] and not page.cssselect("b, i")
    assert "Roshan Jossey" in text(page, ".block.assignee") and text(page, ".block.labels") == "Labels: bug"
    assert text(page, "[data-testid=sidebar-due-date]") == "Due date: Jan 3, 2030"
    assert links(page, ".description li") == ["one", "<i>two</i>"]
    assert "be blank" in visitor.post(f"{here}/notes", 422, note=" ")
    for note in ("first", "second\r\nline"):
        visitor.post(f"{here}/notes", note=note)
    visitor.post(f"{here}/assign_me")
    visitor.post(f"{here}/state", state="closed")
    page = visitor.get(here)
    assert page.cssselect("#notes-list > li:last-child .timeline-discussion-body")[0].text == "second\nline"
    assert "now closed" in text(page, ".message") and not visitor.get(here).cssselect(".message")
    assert "@byteblaze" in text(page, ".block.assignee") and text(page, ".crumbs .tag") == "Closed"
    visitor.post(f"{here}/state", 404, state="closed")  # it is already
    visitor.post(here, title="Plain", assignee="", due_date="", milestone_id="")
    page = visitor.get(here)
    assert text(page, ".block.assignee") == "Assignee: None" and text(page, ".block.labels") == "Labels: None"


def test_outsiders_may_report_and_comment_but_not_plan_or_push(visitor):
    base = "/kkroening/ffmpeg-python/-"
    here = visitor.post(f"{base}/issues", title="Question", assignee="byteblaze", labels="bug", due_date="2030-01-01")
    page = visitor.get(here)
    assert "None" in text(page, ".block.assignee") and "None" in text(page, "[data-testid=sidebar-due-date]")
    assert text(page, ".block.labels") == "Labels: None"
    visitor.get(f"{base}/new/main", 403)
    visitor.get(f"{base}/issues/612/edit", 403)
    for url, data in {
        "create/main": {"file_name": "x", "content": "x"},
        "update/main/README.md": {"content": "x"},
        "project_members": {"users": "yjlou", "role": "30"},
        "issues/612/state": {"state": "closed"},
        "issues/612/assign_me": {},
        "labels": {"title": "new"},
        "milestones": {"title": "new"},
        "branches": {"branch_name": "x", "ref": "main"},
        "merge_requests": {"title": "x"},
    }.items():
        visitor.post(f"{base}/{url}", 403, **data)
    assert not visitor.get(f"{base}/project_members").cssselect("form.invite")


def test_a_merge_request_from_branch_to_branch(visitor):
    base = "/primer/design/-/merge_requests"
    pair = {"merge_request[source_branch]": "dialog-component", "merge_request[target_branch]": "dialog"}
    asked = "&".join(f"{k}={v}" for k, v in pair.items())
    assert "dialog-component into dialog" in text(visitor.get(f"{base}/new?{asked}"))
    same = asked.replace("=dialog-component", "=dialog")
    assert "different branches" in text(visitor.get(f"{base}/new?{same}"))
    assert "Choose two branches" in visitor.post(base, 422, title="x", **pair | {"merge_request[source_branch]": "no"})
    here = visitor.post(base, title="Merge it", reviewer="Caroline Stewart", **pair)
    page = visitor.get(here)
    assert links(page, ".detail-page-description > a.gl-font-monospace") == ["dialog-component", "dialog"]
    assert "Caroline Stewart" in text(page, ".block.reviewer")
    assert "already exists" in text(visitor.get(f"{base}/new?{asked}"))
    assert "already exists" in visitor.post(base, 422, title="Again", **pair)
    visitor.post(f"{here}/state", state="merged")
    assert here.rsplit("/", 1)[1] in text(visitor.get(f"{base}?state=merged"))
    visitor.post(f"{here}/state", 404, state="closed")


def test_members_are_invited_by_name_with_a_role(visitor):
    url = "/byteblaze/dotfiles/-/project_members"
    for users, role, message in (
        ("", "30", "Say whom"),
        ("nobody", "30", "No user matches"),
        ("Jak", "30", "Several users match"),
        ("yjlou", "99", "Choose a role"),
        ("byteblaze", "30", "Already a member"),
    ):
        assert message in visitor.post(url, 422, users=users, role=role)
    visitor.post(url, users="Jakub Klinkovský, @yjlou", role="10")
    page = visitor.get(url)
    names = links(page, "td[data-label=Account] span.gl-avatar-labeled-sublabel")
    rows = dict(zip(names, links(page, "td.col-max-role span"), strict=True))
    assert rows == {"@byteblaze": "Owner", "@lahwaacz": "Guest", "@yjlou": "Guest"}
    visitor.post(f"{url}/yjlou", role="40")
    visitor.post(f"{url}/lahwaacz", remove="1")
    assert "@lahwaacz" not in text(visitor.get(url)) and "Maintainer" in text(visitor.get(url), "table")
    visitor.post(f"{url}/byteblaze", 404, role="10")  # an owner does not lock himself out
    visitor.post("/a11yproject/a11yproject.com/-/project_members", 422, users="yjlou", role="50")  # above my own role


def test_files_are_committed_to_branches(visitor):
    base = "/byteblaze/gimmiethat.space/-"
    for name in ("", "a//b", "../x", "a?b", "a\nb", "a%41"):
        assert "Give the file a name" in visitor.post(f"{base}/create/main", 422, file_name=name, content="x")
    assert "already exists" in visitor.post(f"{base}/create/main", 422, file_name="index.html", content="x")
    assert "no name for a branch" in visitor.post(f"{base}/update/main/index.html", 422, content="x", branch_name="a b")
    made = visitor.post(
        f"{base}/create/main", file_name="car/urls.txt", content="<one>\r\ntwo", commit_message="Add cars"
    )
    assert made == f"{base}/blob/main/car/urls.txt"
    raw = visitor.client.get(f"{base}/raw/main/car/urls.txt", base_url=BASE)
    assert raw.mimetype == "text/plain" and raw.text == "<one>\ntwo"
    assert links(visitor.get(f"{base}/tree/main"), "td a")[0] == "car/"
    assert "Add cars" in text(visitor.get(f"{base}/commits/main"))
    visitor.post(f"{base}/update/main/index.html", content="changed", branch_name="try-it")
    assert text(visitor.get(f"{base}/blob/try-it/index.html"), "pre") == "changed"
    assert "GIMMIE SPACE" in text(visitor.get(f"{base}/blob/main/index.html"), "pre")
    assert "car/" in links(visitor.get(f"{base}/tree/try-it"), "td a")  # a branch shows what it is based on
    commit = visitor.get(f"{base}/commits/try-it").cssselect("main li a")[0].get("href")
    assert "Update index.html" in text(visitor.get(commit)) and len(commit.rsplit("/", 1)[1]) == 40


def test_commits_by_author_and_contributors_in_order(visitor):
    page = visitor.get(f"{A11Y}/-/commits/main?author=Kilian")
    assert text(page, "h2") == "Mar 5, 2023" and all("Kilian" in text(li) for li in page.cssselect("main li"))
    assert "No commits found" in text(visitor.get(f"{A11Y}/-/commits/main?author=nobody"))
    for url in (f"{A11Y}/-/graphs/main", "/amwhalen/archive-my-tweets/-/graphs/php52"):
        counts = [int(row.cssselect("td")[2].text) for row in visitor.get(url).cssselect("tbody tr")]
        assert counts == sorted(counts, reverse=True)
    branch = visitor.get("/amwhalen/archive-my-tweets/-/graphs/php52").cssselect("tbody td")[1].text
    default = visitor.get("/amwhalen/archive-my-tweets/-/graphs/master").cssselect("tbody td")[1].text
    assert branch == "github@amwhalen.com" != default


def test_new_projects(visitor):
    form = {"form": "blank_project", "name": "Do it myself", "namespace": "byteblaze", "visibility": "private"}
    for wrong, message in (
        ({"name": ""}, "be blank"),
        ({"name": "a/b"}, "only letters"),
        ({"name": "dotfiles"}, "already been taken"),
        ({"namespace": "facebook"}, "Choose where"),
        ({"visibility": "secret"}, "Choose where"),
        ({"path": "a b"}, "slug"),
        ({"form": "create_from_template", "template": "none"}, "Choose a template"),
    ):
        assert str(escape(message)) in visitor.post("/projects", 422, **form | wrong)
    here = visitor.post("/projects", **form)
    page = visitor.get(here)
    assert here == "/byteblaze/Do-it-myself" and "is empty" in text(page)
    assert page.cssselect(".visibility-icon")[0].get("title").startswith("Private")
    visitor.post(f"{here}/-/create/main", file_name="README.md", content="# Hello")
    assert text(visitor.get(here), ".readme h2") == "Hello"
    android = {"form": "create_from_template", "template": "android", "name": "app", "visibility": "public"}
    here = visitor.post("/projects", **android)
    assert "Initialized from 'Android' project template" in text(visitor.get(f"{here}/-/commits"))


def test_stars_and_forks(visitor, server):
    visitor.post("/koush/AndroidAsync/-/toggle_star")
    assert "167 stars" in text(visitor.get("/koush/AndroidAsync"))
    assert "Koushik Dutta / AndroidAsync" in links(visitor.get("/users/byteblaze/starred"), ".card > a")
    visitor.post("/koush/AndroidAsync/-/toggle_star")
    assert "Koushik Dutta / AndroidAsync" not in links(visitor.get("/users/byteblaze/starred"), ".card > a")
    form = {"name": "metaseq", "path": "metaseq", "namespace": "byteblaze", "visibility": "public"}
    assert "Choose where" in visitor.post("/root/metaseq/-/forks", 422, **form | {"namespace": ""})
    fork = visitor.post("/root/metaseq/-/forks", **form)
    assert "Forked from Administrator / metaseq" in text(visitor.get(fork))
    assert text(visitor.get(f"{fork}/-/graphs/main"), "tbody") == text(
        visitor.get("/root/metaseq/-/graphs/main"), "tbody"
    )
    visitor.post(f"{fork}/-/update/main/README.md", content="mine")
    assert "mine" not in text(visitor.get("/root/metaseq/-/blob/main/README.md"), "pre")
    assert "taken" in visitor.post("/root/metaseq/-/forks", 422, **form)
    Visitor(server, "someone else").get(fork, 404)  # each session has a state of its own


def test_groups(visitor):
    assert "already been taken" in visitor.post("/groups", 422, name="facebook", visibility="private")
    assert str(escape("be blank")) in visitor.post("/groups", 422, name=" ", visibility="private")
    here = visitor.post("/groups", name="n lab", visibility="private")
    assert here == "/n-lab" and "n lab" in links(visitor.get("/dashboard/groups"), ".card > a")
    members = "/groups/n-lab/-/group_members"
    assert "No user matches" in visitor.post(members, 422, users="nobody", role="30")
    visitor.post(members, users="patou, egpast", role="30")
    assert {"@patou", "@egpast", "@byteblaze"} == set(links(visitor.get(members), ".gl-avatar-labeled-sublabel"))
    visitor.post("/groups/facebook/-/group_members", 403, users="patou", role="30")
    made = visitor.post("/projects", form="blank_project", name="x", namespace="n-lab", visibility="private")
    assert made == "/n-lab/x" and "Owner" in text(visitor.get("/?name=n lab"), ".card")


def test_people_and_settings(visitor):
    visitor.post("/users/vinta/follow")
    assert "@vinta" in text(visitor.get("/users/byteblaze/following"), ".user-profile")
    assert "@byteblaze" in text(visitor.get("/users/vinta/followers"), ".user-profile")
    visitor.post("/users/vinta/unfollow")
    assert "@vinta" not in text(visitor.get("/users/byteblaze/following"), ".user-profile")
    assert "not a valid URL" in visitor.post("/-/profile", 422, name="Byte Blaze", website="no site")
    assert str(escape("Name can't be blank.")) in visitor.post("/-/profile", 422, name="")
    visitor.post("/-/profile", name="Byte Blaze", website="egg.tart.com", status="Enjoying life", busy="1")
    page = visitor.get("/byteblaze")
    assert text(page, '.profile-header [itemprop="url"]') == "egg.tart.com" and "Busy" in text(page, "h1")
    assert page.cssselect(".cover-status")[0].xpath("string(node()[last()])") == "Enjoying life"
    token = visitor.get("/-/profile/personal_access_tokens").cssselect("#feed_token")[0].get("value")
    visitor.post("/-/profile/reset_feed_token")
    assert token == "TMN_bBn9Z48qVbUFZV45"
    assert visitor.get("/-/profile/personal_access_tokens").cssselect("#feed_token")[0].get("value") != token
    visitor.post("/-/profile/preferences", homepage="starred")
    assert text(visitor.get("/"), "h1") == "Starred projects"


def test_milestones_labels_branches_and_todos(visitor):
    base = f"{A11Y}/-"
    for form, message in (
        ({"title": ""}, "be blank"),
        ({"title": "x", "start_date": "soon"}, "YYYY-MM-DD"),
        ({"title": "x", "start_date": "2030-02-01", "due_date": "2030-01-01"}, "greater than start"),
        ({"title": "Spring clean-up"}, "already been taken"),
    ):
        assert message in visitor.post(f"{base}/milestones", 422, **form)
    here = visitor.post(f"{base}/milestones", title="Launch", start_date="2044-03-15", due_date="2044-03-30")
    page = visitor.get(here)
    assert text(page, ".block.start_date") == "Start date: Mar 15, 2044" and "Launch" in text(page, "#content-body")
    visitor.post(f"{here}/state")
    assert "Launch" not in text(visitor.get(f"{base}/milestones")) and "Launch" in text(
        visitor.get(f"{base}/milestones?state=closed")
    )
    assert "already been taken" in visitor.post(f"{base}/labels", 422, title="bug")
    visitor.post(f"{base}/labels", title="new one")
    assert "new one" in links(visitor.get(f"{base}/labels"), "a.tag")
    assert "already exists" in visitor.post(f"{base}/branches", 422, branch_name="redesign", ref="main")
    assert visitor.post(f"{base}/branches", branch_name="a/b", ref="main") == f"{base}/tree/a/b"
    waiting = visitor.get("/dashboard/todos")
    action = waiting.cssselect(".card form")[0].get("action")
    visitor.post(action)
    assert len(visitor.get("/dashboard/todos?state=done").cssselect(".card")) == 1
    visitor.post("/dashboard/todos/9999", 404)


def test_search_finds_words_in_any_order(visitor):
    assert links(visitor.get("/search?search=pytorch gan"), ".card > a")[0] == "Erik Linder-Norén / PyTorch-GAN"
    assert links(visitor.get("/search?search=jakub&scope=users"), "main li a") == ["Jakub Klinkovský"]
    assert "couldn't find any projects" in text(visitor.get("/search?search=zzzz"))
    assert visitor.get("/search?search=%3Cb%3E&scope=nothing").cssselect("main h1")[0].text == "Search results"


def test_small_parts():
    assert str(markdown("# A\nb <i>\n\n- x\n- y\n\n```\n<z>\n```")) == (
        "<h2>A</h2><p>b &lt;i&gt;</p><ul><li>x</li><li>y</li></ul><pre>&lt;z&gt;\n</pre>"
    )
    assert [slug(name) for name in ("Do it myself", "11711_gitlab", " --a.b ")] == [
        "Do-it-myself",
        "11711_gitlab",
        "a.b",
    ]
    assert [valid_date(day) for day in ("2030-01-03", "2030-02-30", "2030-1-3", "tomorrow", "")] == [True] + [False] * 4


def test_templates_are_of_all_kinds_and_two_are_held_out():
    assert {t.kind for t in TEMPLATES} == {"information", "navigation", "change"}
    assert sum(t.held_out for t in TEMPLATES) == 2 and len({t.name for t in TEMPLATES}) == len(TEMPLATES) >= 6
    for seed in (0, 1):
        db = make_database(seed)
        for template in TEMPLATES:
            assert len(template.instances(db, random.Random(0))) >= 8, (template.name, seed)
