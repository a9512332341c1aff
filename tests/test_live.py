"""The user's own WebArena: addresses, logins through the sites' forms, cookies that are kept and renewed.

The replicas stand for the real sites: behind logins, on a port of this machine, found through WA_* variables.
"""

import asyncio
import json
import socket
import stat
import time

import pytest
from werkzeug.test import Client

from dynaweb_lite import live
from dynaweb_lite.actions import Action
from dynaweb_lite.browser import RealWeb
from dynaweb_lite.live import LoginError, allowed_hosts, counterpart
from dynaweb_lite.observation import parse_observation
from dynaweb_lite.scripted import ScriptPolicy
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.login import ACCOUNTS, FORMS
from dynaweb_lite.tasks import (
    REPLICA_HOSTS,
    TABS,
    Task,
    TaskError,
    live_urls,
    load_tasks,
    resolve_url,
    site_urls,
    sites_at,
)
from dynaweb_lite.webarena_tasks import replicated, replicated_tasks, task_file
from dynaweb_lite.worlds import rollout

ROW = {"task_id": 1, "sites": ["map"], "start_url": "__MAP__", "intent": "x", "eval": {"eval_types": []}}
PATHS = {
    "shopping_admin": "/admin",
    "wikipedia": "/wikipedia_en_all_maxi_2022-05/A/User:The_other_Kiwix_guy/Landing",
}


@pytest.fixture(scope="module")
def server():
    with SiteServer(ground="webarena", login=True) as running:
        yield running


@pytest.fixture
def addresses(server, monkeypatch):
    """The WA_* variables name the replicas, as a user's name the real sites."""
    server.reset("default")
    for site, host in REPLICA_HOSTS.items():
        name = host.removesuffix(".test")
        monkeypatch.setenv(f"WA_{site.upper()}", f"http://{name}.localhost:{server.port}{PATHS.get(site, '')}")


# Task files and addresses


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("", "no whole JSON file"),
        (json.dumps([ROW, ROW])[:-9], "no whole JSON file"),
        ('{"task_id": 1}', "must be a list"),
        ("[7]", "row 1: a task is a JSON object, not int"),
        (
            json.dumps([ROW, {k: v for k, v in ROW.items() if k != "eval"} | {"task_id": 2}]),
            "row 2: task 2 has no eval",
        ),
        (json.dumps([ROW | {"intent": None}]), "row 1: task 1: intent is NoneType, not str"),
        (json.dumps([ROW | {"sites": []}]), "row 1: task 1: sites must name"),
        (json.dumps([ROW, ROW]), "row 2: task_id 1 stands twice"),
        (
            json.dumps([ROW | {"start_url": "__AMAZON__/x"}]),
            "row 1: task 1: unknown site __AMAZON__; known: __SHOPPING__",
        ),
        (json.dumps([ROW | {"eval": {"program_html": [{"url": "__SHOP__/x"}]}}]), "unknown site __SHOP__"),
    ],
)
def test_a_bad_task_file_is_refused_with_the_place(tmp_path, text, message):
    path = tmp_path / "tasks.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(TaskError, match="tasks.json.*" + message):
        load_tasks(path)


def test_webarenas_file_has_no_unknown_site_and_reads_whole():
    tasks = load_tasks(task_file())
    assert len(tasks) == 812
    assert {site for task in tasks for site in task.visited_sites} == set(REPLICA_HOSTS) - {"homepage"}
    assert max(len(task.start_urls) for task in tasks) == 3


def test_a_site_without_an_address_is_an_error_that_names_its_variable(monkeypatch):
    monkeypatch.setenv("WA_REDDIT", "http://10.0.0.7:9999/")
    assert resolve_url("__REDDIT__/f/x") == "http://10.0.0.7:9999/f/x"
    assert resolve_url("__REDDIT__") == "http://10.0.0.7:9999/"
    with pytest.raises(TaskError, match="gitlab has no address: set WA_GITLAB"):
        resolve_url("__GITLAB__/x")
    with sites_at({"gitlab": "http://other"}):
        assert resolve_url("__GITLAB__/x") == "http://other/x"
    assert "gitlab" not in site_urls()
    monkeypatch.setenv("WA_MAP", "localhost:3000")
    with pytest.raises(TaskError, match="WA_MAP is 'localhost:3000', not an address"):
        live_urls()


def test_addresses_may_have_paths_and_hosts_are_told_apart_by_port(monkeypatch):
    monkeypatch.setenv("WA_SHOPPING_ADMIN", "http://h:7780/admin/")
    monkeypatch.setenv("WA_SHOPPING", "http://h:7770")
    monkeypatch.setenv("WA_WIKIPEDIA", "http://h:8888/A/Landing")
    assert resolve_url("__SHOPPING_ADMIN__") == "http://h:7780/admin"
    assert resolve_url("__SHOPPING_ADMIN__/sales/order/") == "http://h:7780/admin/sales/order/"
    assert resolve_url("__WIKIPEDIA__") == "http://h:8888/A/Landing"
    task = Task.from_json(ROW | {"sites": ["wikipedia"], "start_url": "__SHOPPING__"})
    assert task.visited_sites == ["wikipedia", "shopping"]
    assert allowed_hosts(task, live_urls()) == ["h:7770", "h:8888"]


# The replicas' login forms


def visit(server, client, site, path, **request):
    return client.open(path, base_url=f"http://{REPLICA_HOSTS[site]}", **request)


def send_form(server, client, site, password):
    form = FORMS[site]
    page = visit(server, client, site, form.path or "/admin/sales/order/")
    token = page.text.split(f'name="{form.token}" value="')[1].split('"')[0]
    data = {form.user.name: ACCOUNTS[site][0], form.password.name: password, form.token: token}
    return visit(server, client, site, form.action or "/admin/sales/order/", method="POST", data=data)


@pytest.mark.parametrize("site", FORMS)
def test_a_replica_behind_a_login_lets_in_who_knows_the_account_and_forgets_it(site):
    server = SiteServer(ground="webarena", login=True, login_seconds=1000)
    client, form, wanted = (
        Client(server.app),
        FORMS[site],
        "/admin/sales/order/" if site == "shopping_admin" else "/x?y=1",
    )
    asked = visit(server, client, site, wanted)
    if form.path:
        assert (asked.status_code, asked.headers["Location"]) == (302, form.path)
    else:
        assert asked.status_code == 200 and f'name="{form.user.name}"' in asked.text
    assert visit(server, client, site, "/static/webarena.css").status_code == 200
    refused = send_form(server, client, site, "wrong")
    assert refused.status_code == 200 and "password is wrong" in refused.text
    entered = send_form(server, client, site, ACCOUNTS[site][1])
    assert (entered.status_code, entered.headers["Location"]) == (303, wanted)
    assert ("Max-Age=1000" in entered.headers["Set-Cookie"]) == form.lasts
    assert f'name="{form.user.name}"' not in visit(server, client, site, wanted).text
    server.expire_logins()
    again = visit(server, client, site, wanted)
    assert again.status_code == 302 if form.path else f'name="{form.user.name}"' in again.text


def test_a_form_without_its_token_and_a_session_after_its_time_do_not_get_in():
    server = SiteServer(login=True, login_seconds=0)
    client, (user, password) = Client(server.app), ACCOUNTS["reddit"]
    visit(server, client, "reddit", "/login")
    data = {"_username": user, "_password": password}
    assert "wrong" in visit(server, client, "reddit", "/login_check", method="POST", data=data).text
    assert send_form(server, client, "reddit", password).status_code == 303
    assert visit(server, client, "reddit", "/").headers["Location"] == "/login"


def test_scripts_that_log_in_to_the_originals_find_their_way(server, addresses):
    """Labels, placeholders, test ids and buttons by which WebArena's and BrowserGym's own code finds the forms."""

    async def log_in(page, site):
        user, password = ACCOUNTS[site]
        await page.goto(live_urls()[site] + FORMS[site].path)
        if site == "gitlab":
            await page.get_by_test_id("username-field").fill(user)
            await page.get_by_test_id("password-field").fill(password)
            await page.get_by_test_id("sign-in-button").click()
        elif site == "shopping_admin":
            await page.get_by_placeholder("user name").fill(user)
            await page.get_by_placeholder("password").fill(password)
            await page.get_by_role("button", name="Sign in").click()
        else:
            if site == "reddit":
                await page.get_by_role("link", name="Log in").click()
            await page.get_by_label("Email" if site == "shopping" else "Username", exact=True).fill(user)
            await page.get_by_label("Password", exact=True).fill(password)
            await page.get_by_role("button", name="Sign In" if site == "shopping" else "Log in").click()
        await page.goto(live_urls()[site] + FORMS[site].members.format(user=user))
        return await page.get_by_label("Password", exact=True).count()

    async def all_sites(browser):
        page = await (await browser.new_context()).new_page()
        return [await log_in(page, site) for site in FORMS]

    with RealWeb() as web:
        assert web.worker.run(all_sites(web._browser)) == [0, 0, 0, 0]


# Live mode


TASKS = {"shopping": 465, "shopping_admin": 488, "reddit": 399, "gitlab": 419}
"""A task of WebArena on each site, all of which change something through a form."""


class Expiring(ScriptPolicy):
    """Plays scripts, and ends all logins before each action that sends a form."""

    def __init__(self, rows, server):
        super().__init__({row.task_id: row.solution for row in rows})
        self.server, self.expired, self.seen = server, 0, []

    def act(self, episodes, observations):
        self.seen += observations
        decisions = super().act(episodes, observations)
        if any(d.thought.startswith("Click the button") for d in decisions):
            self.server.expire_logins()
            self.expired += 1
        return decisions


def test_tasks_of_webarena_run_live_from_start_to_score_while_logins_expire(server, addresses):
    rows = replicated(ids=list(TASKS.values()))
    tasks, policy = replicated_tasks(rows), Expiring(rows, server)
    with RealWeb() as web:
        episodes = rollout(policy, web, tasks, 12)
        assert [e.reward for e in episodes] == [1.0] * 4, policy.errors
        assert policy.expired and web.logins.count > 4
        assert policy.errors == {} and not any("login" in page.url for page in policy.seen)
        assert all(".localhost" in page.url for page in policy.seen)
        assert [len(e.steps) for e in episodes] == [len(row.solution) for row in rows]  # no step was lost


def test_a_login_is_shared_reused_and_checked_before_it_is_used_again(server, addresses, monkeypatch):
    tasks = [replicated_tasks(replicated(ids=[TASKS["reddit"]]))[0]] * 3
    with RealWeb() as web:
        assert all(page.find("link", "MarvelsGrantMan136") for page in web.reset(tasks))
        web.reset(tasks)
        assert web.logins.count == 1
        monkeypatch.setattr(live, "CHECK_SECONDS", 0.0)
        web.reset(tasks)
        assert web.logins.count == 1  # it was looked at, and still held
        server.expire_logins()
        assert all(page.find("link", "MarvelsGrantMan136") for page in web.reset(tasks))
        assert web.logins.count == 2


def test_cookies_that_browsers_let_expire_are_renewed_too(server, addresses, monkeypatch):
    """Magento's cookies have a date; after it the browser no longer sends them, and takes none like them."""
    monkeypatch.setattr(server.walls["shopping"], "seconds", 3)
    task = replicated_tasks(replicated(ids=[TASKS["shopping"]]))[0]
    with RealWeb() as web:
        for count in (1, 2):
            page = web.reset([task])[0]
            assert page.find("link", "My Account") and web.logins.count == 2 * count - 1
            time.sleep(4)
            page = web.step([f"click [{page.find('link', 'My Account').id}]"])[0].observation
            assert page.url.endswith("/customer/account/") and not page.last_action_error
            assert web.logins.count == 2 * count
            time.sleep(4)


def test_a_start_page_whose_login_has_just_expired_opens_all_the_same(server, addresses):
    tasks = replicated_tasks(replicated(ids=[TASKS["gitlab"], TASKS["shopping_admin"]]))
    with RealWeb() as web:
        first = [page.text for page in web.reset(tasks)]
        server.expire_logins()
        assert [page.text for page in web.reset(tasks)] == first
        assert web.logins.count == 4


def test_logins_survive_in_a_file_for_its_owner_alone(server, addresses, tmp_path, monkeypatch):
    path, task = tmp_path / "kept" / "logins.json", replicated_tasks(replicated(ids=[TASKS["reddit"]]))[0]
    for count in (1, 0):
        with RealWeb(logins=path) as web:
            assert web.reset([task])[0].find("link", "MarvelsGrantMan136")
            assert web.logins.count == count
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.setenv("WA_REDDIT_USERNAME", "someone_else")
    with RealWeb(logins=path) as web:  # another account: the cookies are not its
        page = web.reset([task])[0]
        assert "reddit does not let 'someone_else' in" in page.last_action_error
        assert "WA_REDDIT_USERNAME" in page.last_action_error and "test1234" not in page.last_action_error
        step = web.step(["go_back"])[0]
        assert step.truncated and "someone_else" in step.info["error"]
    path.write_text("[1]")
    with pytest.raises(LoginError, match="logins.json is no file of logins"):
        RealWeb(logins=path)


def test_several_sites_and_several_tabs(server, addresses):
    row = ROW | {
        "sites": ["gitlab", "reddit"],
        "start_url": f"__GITLAB__{TABS}__REDDIT__/f/books{TABS}__GITLAB__/byteblaze",
    }
    with RealWeb() as web:
        page = web.reset([Task.from_json(row)])[0]
        assert page.tab == 0 and [tab[0] for tab in page.other_tabs] == [1, 2]
        assert [tab[2] for tab in page.other_tabs] == [resolve_url(url) for url in row["start_url"].split(TABS)[1:]]
        assert all(tab[1] for tab in page.other_tabs)
        books = web.step(["tab_focus [1]"])[0].observation
        assert (
            books.find("link", "MarvelsGrantMan136")
            and "no page to go back" in web.step(["go_back"])[0].observation.text
        )
        shop = live_urls()["shopping"]
        assert "host not allowed: shop.localhost" in web.step([f"goto [{shop}/]"])[0].observation.last_action_error
        assert not web.step([f"goto [{live_urls()['homepage']}]"])[0].observation.last_action_error


def test_replicas_are_the_replicas_whatever_variables_are_set(addresses):
    task = replicated_tasks(replicated(ids=[TASKS["reddit"]]))[0]
    with RealWeb(SiteServer(ground="webarena"), contexts=1) as web:
        assert web.reset([task])[0].url == "http://forum.test/"


def test_missing_and_unreachable_sites_are_named_and_harm_no_other(server, addresses, monkeypatch):
    by_site = {site: replicated_tasks(replicated(ids=[task_id]))[0] for site, task_id in TASKS.items()}
    closed, silent = socket.socket(), socket.create_server(("127.0.0.1", 0))  # refuses; accepts and never answers
    closed.bind(("127.0.0.1", 0))
    monkeypatch.setenv("WA_SHOPPING", f"http://shop.localhost:{closed.getsockname()[1]}")
    monkeypatch.setenv("WA_GITLAB", f"http://git.localhost:{silent.getsockname()[1]}")
    monkeypatch.setattr(live, "LOGIN_SECONDS", 5.0)
    with RealWeb(step_timeout_seconds=10) as web:
        pages = web.reset([by_site["shopping"], by_site["reddit"], by_site["gitlab"], by_site["gitlab"]])
        assert "WA_SHOPPING: http://shop.localhost" in pages[0].last_action_error
        assert "CONNECTION_REFUSED" in pages[0].last_action_error
        assert pages[1].find("link", "MarvelsGrantMan136")
        assert all("WA_GITLAB" in p.last_action_error and "within 5 seconds" in p.last_action_error for p in pages[2:])
        steps = web.step(["go_back", f"click [{pages[1].find('link', 'Forums').id}]", "go_back", None])
        assert [s and s.truncated for s in steps] == [True, False, True, None]
        assert "Forums" in steps[1].observation.title
    monkeypatch.delenv("WA_GITLAB")
    with RealWeb() as web, pytest.raises(TaskError, match="set WA_GITLAB"):
        web.reset([by_site["reddit"], by_site["gitlab"]])


def test_an_address_that_is_no_such_site_is_named(server, addresses, monkeypatch):
    monkeypatch.setenv("WA_SHOPPING", live_urls()["map"])
    with RealWeb() as web:
        page = web.reset(replicated_tasks(replicated(ids=[TASKS["shopping"]])))[0]
        assert "shows no login form of shopping: correct WA_SHOPPING" in page.last_action_error


def test_an_action_is_done_again_only_where_its_page_offers_the_same():
    def page(*lines):
        text = "\n".join(f"[{i}] {line}" for i, line in enumerate(lines, 1))
        return parse_observation(f"Tab 0 (current): Edit | http://h/edit\n{text}")

    box, button = "textbox 'Title' value: 'new'", "button 'Save'"
    before = page("StaticText 'Saved.'", box, button, "link 'Back'")
    assert counterpart(Action("click", 3), before, page(box, button, "link 'Back'")) == Action("click", 2)
    assert counterpart(Action("press", None, "Enter"), before, page(box, button)) == Action("press", None, "Enter")
    lost = page("textbox 'Title' value: 'old'", button)
    assert counterpart(Action("click", 3), before, lost) is None  # what was entered is gone
    assert counterpart(Action("type", 2, "x", True), before, lost) == Action("type", 1, "x", True)
    assert counterpart(Action("click", 3), before, page(box, "button 'Delete'", button)) is None
    assert counterpart(Action("click", 4), before, before) is None  # a link sends no form


def test_sites_on_one_host_tell_their_cookies_apart_by_renewal():
    """WebArena's shop and forum both call their cookie PHPSESSID; on one host the later one wins."""
    urls = {"shopping": "http://h:7770", "reddit": "http://h:9999", "shopping_admin": "http://h:7770/admin"}
    logins = live.Logins(urls, lambda hosts: None)
    assert logins.site_of("http://h:7770/x") == "shopping" and logins.site_of("http://h:9999/") == "reddit"
    assert logins.site_of("http://h:7770/admin/sales") == "shopping_admin" and logins.site_of("http://x/") is None
    given = []

    class Context:
        async def add_cookies(self, cookies):
            given.extend(cookie["value"] for cookie in cookies)

    for site, login in logins.logins.items():
        login.cookies, login.checked = [{"name": "PHPSESSID", "value": site}], 1e12
    task = Task.from_json(ROW | {"sites": ["reddit", "shopping"], "start_url": "__REDDIT__"})
    asyncio.run(logins.give(Context(), task))
    assert given == ["shopping", "reddit"]  # that of the first site, where the task begins, stays
