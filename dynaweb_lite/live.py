"""The user's own WebArena: which hosts a task may reach, and logins that are kept, shared and renewed.

Addresses come from the WA_* variables. Accounts are WebArena's public ones, or those that WA_SHOPPING_USERNAME,
WA_SHOPPING_PASSWORD and the like name. Cookies stay in memory, or in a file that the user names.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from dynaweb_lite.actions import Action
from dynaweb_lite.chromium_tab import ChromiumTab, first_line, host_of, hosts_of, quietly
from dynaweb_lite.episode import Episode
from dynaweb_lite.observation import INTERACTIVE_ROLES, Observation
from dynaweb_lite.sites.login import ACCOUNTS, FORMS
from dynaweb_lite.tasks import Task, resolve_url, variable

EXTRA_HOSTS = "WA_EXTRA_HOSTS"
"""Hosts that pages of the user's sites load from besides their own (map tiles, routes), parted by commas."""
CHECK_SECONDS = 60.0
"""A login that was seen to hold is taken to hold so long."""
JUST_SECONDS = 2.0
"""The same, for a context that has just found its own login expired."""
LOGIN_SECONDS = 60.0
"""How long logging in to one site may take."""

SIGNED_OUT = """([field, signIn, signOut]) => document.getElementsByName(field).length > 0 ||
  !!signIn && !!document.querySelector(`a[href*="${signIn}"]`) &&
  !document.querySelector(`[href*="${signOut}"], [action*="${signOut}"]`)"""
"""Whether a page is the login form, or offers it without offering to log out."""

COMPLAINT = ".message-error, .flash-alert, .gl-alert-body, .alert, .form-error-list, [role=alert]"


class LoginError(RuntimeError):
    """A site cannot be logged in to; the message says which, why, and which variables to set."""


def allowed_hosts(task: Task, urls: Mapping[str, str]) -> list[str]:
    """Where the agent may go in a task: its sites and WebArena's home page, which links them; its start pages."""
    sites = [urls[site] for site in (*task.visited_sites, "homepage") if site in urls]
    return hosts_of([*sites, *map(resolve_url, task.start_urls)])


class Wall:
    """What keeps a context within its hosts, whatever its pages do: a proxy for all others that takes no connection.

    Chromium itself decides by host name, for redirects, frames, scripts and sockets alike; ports are told apart where
    the agent goes (episode.py), since a site's pages may well load from another port of their host.
    """

    def __init__(self) -> None:
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))  # never listens: a connection is refused, and nobody else gets the port

    def around(self, hosts: Sequence[str]) -> dict[str, str]:
        """Playwright's `proxy` setting for a context that may reach these hosts and those of WA_EXTRA_HOSTS."""
        extra = [host for host in re.split(r"[,;\s]+", os.environ.get(EXTRA_HOSTS, "")) if host]
        names = [re.sub(r":\d+$", "", host) for host in hosts]
        return {
            "server": f"http://127.0.0.1:{self.socket.getsockname()[1]}",
            "bypass": ",".join(dict.fromkeys([*names, *extra])),
        }

    def close(self) -> None:
        self.socket.close()


@dataclass
class Login:
    """The login on one site: its cookies, when they were last seen to hold, and why they could not be had."""

    cookies: list[dict] = field(default_factory=list)
    checked: float = -CHECK_SECONDS
    failed: float = -CHECK_SECONDS
    error: str = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Logins:
    """One login for each of the user's sites, shared by all contexts. Used in the browser's thread only.

    `open_context` opens an empty context that may reach the given hosts. `path`: a file that keeps the cookies between
    runs, readable by its owner alone. Raises LoginError when that file cannot be read.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        open_context: Callable[[Sequence[str]], Awaitable[BrowserContext]],
        path: str | Path | None = None,
    ) -> None:
        self.urls, self.open_context, self.path = urls, open_context, Path(path) if path else None
        self.logins = {site: Login() for site in FORMS if site in urls}
        self.count = 0
        if self.path and self.path.exists():
            self._load(self.path)

    async def give(self, context: BrowserContext, task: Task) -> None:
        """Log a context in on all sites of a task. Raises LoginError.

        The first site's cookies come last: on one host, sites that call their cookies alike overwrite each other.
        """
        for site in reversed(task.visited_sites if task.require_login else []):
            if site in self.logins:
                await context.add_cookies(await self._cookies(site))

    async def keep(self, episode: Episode, action: Action, max_elements: int, error: str) -> str:
        """After an action, log in again if its page says that the login has expired, and open the page asked for.

        When a form was sent in vain, the browser goes back to it, which brings back what was entered, and the action
        is done again if all fields and buttons are as before. Returns the action's error, or that it was not done.
        Raises LoginError.
        """
        if not episode.asked:
            return error
        page, wanted = episode.seen, episode.wanted(episode.tab.page.url)
        if not await self.keep_tab(episode.context, episode.tab, wanted or page.url, is_form=not wanted) or wanted:
            return error
        if again := counterpart(action, page, await episode.observe(max_elements)):
            return await episode.act(again)
        return "the login had expired and was renewed: this page was opened anew, and the action was not done"

    async def keep_tab(self, context: BrowserContext, tab: ChromiumTab, wanted: str, is_form: bool = False) -> bool:
        """Log in again and open the page `wanted` if the tab shows that the login has expired. Returns whether it did.

        `is_form`: a form on that page was sent; go back to it. Raises LoginError.
        """
        for number in range(3):  # the first time, another context's newer cookies may do
            if number == 2 or not (site := await self.signed_out(tab)):
                break
            await self._renew(context, site, is_again=number > 0)
            await self._reopen(tab, wanted, go_back=is_form and number == 0)
        return number > 0

    async def _reopen(self, tab: ChromiumTab, url: str, go_back: bool) -> None:
        await tab.page.wait_for_load_state("load")
        if go_back:  # past the cache: the page in it holds the token of the login that is over
            await tab.session.send("Network.setCacheDisabled", {"cacheDisabled": True})
            error = await tab.move(-1)
            await tab.session.send("Network.setCacheDisabled", {"cacheDisabled": False})
            if not error and tab.page.url.split("#")[0] == url.split("#")[0]:
                return
        await tab.replace(url)

    async def signed_out(self, tab: ChromiumTab) -> str:
        """The site whose login the tab's page asks for, or an empty string."""
        site = self.site_of(tab.page.url)
        if site is None:
            return ""
        form = FORMS[site]
        return site if await tab.page.evaluate(SIGNED_OUT, [form.user.name, form.path, form.sign_out]) else ""

    def site_of(self, url: str) -> str | None:
        """The site with a login that an address belongs to."""
        host, path = host_of(url), urlsplit(url).path
        bases = {site: self.urls[site] for site in self.logins if host_of(self.urls[site]) == host}
        found = [site for site, base in bases.items() if path.startswith(urlsplit(base).path)]
        return max(found, key=lambda site: len(bases[site]), default=None)

    async def _renew(self, context: BrowserContext, site: str, is_again: bool) -> None:
        """Give a context cookies other than those it holds: newer ones, or (always if `is_again`) of a new login."""
        login = self.logins[site]
        held = {(c["name"], c["value"]) for c in await context.cookies(self.urls[site])}
        async with login.lock:
            if is_again or {(c["name"], c["value"]) for c in login.cookies} <= held:
                login.cookies, login.checked = [], -CHECK_SECONDS
            elif time.monotonic() - login.checked > JUST_SECONDS:
                login.checked = -CHECK_SECONDS  # newer than the context's, but that may be over as well
        await context.add_cookies(await self._cookies(site))

    async def _cookies(self, site: str) -> list[dict]:
        """Cookies that are logged in on a site, checked within CHECK_SECONDS. Raises LoginError."""
        login = self.logins[site]
        async with login.lock:
            now, lasting = time.monotonic(), unexpired(login.cookies)
            if now - login.checked < CHECK_SECONDS and len(lasting) == len(login.cookies):
                return login.cookies
            if now - login.failed < CHECK_SECONDS:
                raise LoginError(login.error)
            try:
                login.cookies = await asyncio.wait_for(self._check(site, lasting), LOGIN_SECONDS)
            except (PlaywrightError, TimeoutError, LoginError) as error:
                login.error, login.failed = self._explain(site, error), now
                raise LoginError(login.error) from error
            login.checked = time.monotonic()
            self._save()
            return login.cookies

    def _explain(self, site: str, error: Exception) -> str:
        if isinstance(error, LoginError):
            return str(error)
        said = f"no answer within {LOGIN_SECONDS:g} seconds" if isinstance(error, TimeoutError) else first_line(error)
        return f"{variable(site)}: {self.urls[site]} cannot be logged in to: {said}"

    async def _check(self, site: str, cookies: list[dict]) -> list[dict]:
        """The cookies after a visit to a members' page, logged in anew where they have expired."""
        form, base = FORMS[site], self.urls[site]
        context = await self.open_context(hosts_of([base]))
        try:
            await context.add_cookies(cookies)
            page = await context.new_page()
            user, _ = account(site)
            await page.goto(base + (form.members.format(user=user) if cookies else form.path), timeout=0)
            if await page.locator(field_named(form.user.name)).count():
                await self._fill_in(page, site)
            elif not cookies:
                raise LoginError(f"{base}{form.path} shows no login form of {site}: correct {variable(site)}")
            return await context.cookies()
        finally:
            await quietly(context.close())

    async def _fill_in(self, page: Page, site: str) -> None:
        form, (user, password) = FORMS[site], account(site)
        await page.fill(field_named(form.user.name), user)
        await page.fill(field_named(form.password.name), password)
        async with page.expect_navigation(wait_until="domcontentloaded", timeout=0):
            await page.press(field_named(form.password.name), "Enter")
        if await page.locator(field_named(form.user.name)).count():
            said = await page.locator(COMPLAINT).all_inner_texts()
            raise LoginError(
                f"{site} does not let {user!r} in ({' '.join(said).strip() or 'the form came back'}): "
                f"set {variable(site)}_USERNAME and {variable(site)}_PASSWORD"
            )
        self.count += 1

    def _load(self, path: Path) -> None:
        """Cookies of an earlier run; those of another address or account stay behind, as does what is no such file."""
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            kept = {site: row["cookies"] for site, row in rows.items() if self._whose(site) == row["of"]}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise LoginError(f"{path} is no file of logins: name another, or delete it ({error})") from error
        for site, cookies in kept.items():
            self.logins[site].cookies = cookies

    def _whose(self, site: str) -> list[str] | None:
        return [self.urls[site], account(site)[0]] if site in self.logins else None

    def _save(self) -> None:
        """Write whole or not at all, for the owner's eyes only."""
        if self.path is None:
            return
        rows = {s: {"of": self._whose(s), "cookies": login.cookies} for s, login in self.logins.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(self.path.name + ".part")
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(rows, file)
        part.replace(self.path)


def counterpart(action: Action, page: Observation, now: Observation) -> Action | None:
    """The action that does on the page as it is now what this one did on it before; None when its controls differ.

    Ids may have moved, as when a message is gone. A field that the action filled in may hold its text already.
    """
    before, after = ([e for e in p.elements if e.role in INTERACTIVE_ROLES - {"link"}] for p in (page, now))
    own = next((i for i, e in enumerate(before) if e.id == action.element_id), None)
    labels = [[e.name if i == own else e.label for i, e in enumerate(controls)] for controls in (before, after)]
    if labels[0] != labels[1] or (own is None and action.element_id is not None):
        return None
    return action if own is None else replace(action, element_id=after[own].id)


def account(site: str) -> tuple[str, str]:
    """User name and password for a site: of the environment, else WebArena's."""
    user, password = ACCOUNTS[site]
    name = variable(site)
    return os.environ.get(f"{name}_USERNAME", user), os.environ.get(f"{name}_PASSWORD", password)


def field_named(name: str) -> str:
    return f'input[name="{name}"]'


def unexpired(cookies: Sequence[dict]) -> list[dict]:
    """The cookies that a browser would still take: those without a date, or with one that is not over at once."""
    return [c for c in cookies if c.get("expires", -1) < 0 or c["expires"] > time.time() + 1]
