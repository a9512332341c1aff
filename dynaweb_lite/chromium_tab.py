"""One tab of Chromium: read it as an accessibility tree, act on its elements, know when the next page is there.

Actions go through the DevTools protocol: an element is checked for what would stop a person (gone, invisible, disabled,
covered) and clicked in one call, then the tab waits for a navigation only if one began. No fixed sleeps.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Iterable
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import CDPSession, Dialog, Page
from playwright.async_api import Error as PlaywrightError

from dynaweb_lite.accessibility import from_chromium, read_page
from dynaweb_lite.actions import Action
from dynaweb_lite.direct_tab import not_allowed
from dynaweb_lite.forms import NOT_SENT, no_option
from dynaweb_lite.navigation import Navigation
from dynaweb_lite.observation import Observation

LIVE_SETTLE_SECONDS = 0.5
"""Real sites go on building a page by script after it has loaded; replicas have no scripts."""

MAX_NOTES = 3
"""What a page does unasked (dialogs, downloads) is told the agent, but no more of it than this for one action."""

SETTLE = "new Promise(done => setTimeout(() => setTimeout(done)))"
"""Resolves after the tasks that an event has queued, a form's submission among them."""

ACT = """
async function(kind, text, hosts) {
  const el = this.nodeType === Node.TEXT_NODE ? this.parentElement : this;
  if (!el || !el.isConnected) return "the element is gone";
  const target = el.closest("option") && el.closest("select") || el;
  target.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
  const box = [...target.getClientRects()].find(b => b.width > 0 && b.height > 0);
  if (!box || getComputedStyle(target).visibility !== "visible") return "the element is not visible";
  if (el.matches(":disabled") || target.matches(":disabled")) return "the element is disabled";
  const x = box.x + box.width / 2, y = box.y + box.height / 2;
  const hit = target.getRootNode().elementFromPoint(x, y);
  if (hit && !target.contains(hit) && hit.closest("label")?.control !== target)
    return `the element is covered by ${hit.tagName.toLowerCase()}`;
  if (kind === "hover") return [x, y];
  if (kind === "select" || el.tagName === "OPTION") {
    const one_line = s => s.trim().split(/\\s+/).join(" ");
    const option = kind === "click" ? el :
      [...(el.options || [])].find(o => one_line(o.label) === one_line(text) && !o.disabled);
    if (!option) return "no option";
    option.selected = true;
    for (const event of ["input", "change"]) target.dispatchEvent(new Event(event, {bubbles: true}));
  } else if (kind === "type") {
    if (el.readOnly || !(el.select || el.isContentEditable)) return `this ${el.tagName.toLowerCase()} takes no text`;
    if (el.type === "number" && text && !/^-?\\d+(\\.\\d+)?$/.test(text)) return `not a number: '${text}'`;
    el.focus();
    el.select ? el.select() : getSelection().selectAllChildren(el);
    document.execCommand("delete");
    return null;
  } else {
    const goal = el.closest("a[href], button, input, label, summary");
    const form = goal?.form && ["submit", "image"].includes(goal.type) ? goal.form : null;
    const url = goal?.href ?? form?.action;
    const host = url && /^https?:/.test(url) ? new URL(url).host : "";
    if (host && !hosts.includes(host)) return "host not allowed: " + host;
    if (form && !form.noValidate && !goal.formNoValidate && !form.checkValidity()) return "form not sent";
    const at = {bubbles: true, cancelable: true, composed: true, view: window, clientX: x, clientY: y};
    const mouse = names => names.forEach(name => el.dispatchEvent(new MouseEvent(name, at)));
    mouse(["mouseover", "mousemove", "mousedown"]);
    (goal ?? el).focus?.({preventScroll: true});
    mouse(["mouseup"]);
    el.click ? el.click() : mouse(["click"]);
  }
  await SETTLE;
  return null;
}
""".replace("SETTLE", SETTLE)


class ChromiumTab:
    """A Playwright page and its DevTools session. Made by `ChromiumTab.attach`; used in the browser's thread only."""

    def __init__(self, page: Page, session: CDPSession, main_frame: str, hosts: list[str], is_live: bool) -> None:
        self.page, self.session, self.hosts = page, session, hosts
        self.settle_seconds = LIVE_SETTLE_SECONDS if is_live else 0.0
        self.navigation = Navigation(session, main_frame)
        self.popup_announced = False
        self.notes: list[str] = []
        self.title, self.url = "", page.url
        self.keys: list[int] = []

    @classmethod
    async def attach(cls, page: Page, hosts: list[str], is_live: bool) -> ChromiumTab:
        """Take charge of a page. `hosts`: where it may go, each with its port unless that is the usual one.

        On replicas the cache is off: going back shows what is.
        """
        session = await page.context.new_cdp_session(page)
        frames = await session.send("Page.getFrameTree")
        tab = cls(page, session, frames["frameTree"]["frame"]["id"], hosts, is_live)
        session.on("Page.windowOpen", tab._popup)
        page.on("dialog", tab._answer)
        session.on("Page.downloadWillBegin", tab._refuse)
        await tab.navigation.watch()
        if not is_live:
            await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        return tab

    def _popup(self, _: dict) -> None:
        self.popup_announced = True

    async def _answer(self, dialog: Dialog) -> None:
        """Leave a page that asks whether to be left, as the action asked for; say no to all else. Both are noted."""
        if dialog.type == "beforeunload":
            self._note("left a page that asked whether to leave it: what was entered there may be lost")
            return await quietly(dialog.accept())
        self._note(f"dismissed a dialog: {dialog.message}")
        await quietly(dialog.dismiss())

    def _refuse(self, download: dict) -> None:
        self._note(f"a download was refused: {download['suggestedFilename']}")

    def _note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)

    async def goto(self, url: str) -> str:
        """Open a URL. Returns why it cannot be, or an empty string."""
        host = host_of(url)
        if host not in self.hosts or urlsplit(url).scheme not in ("http", "https"):
            return not_allowed(host or url)
        try:
            await self.page.goto(url, wait_until="domcontentloaded", timeout=0)
        except PlaywrightError as error:
            if not is_refusal(error):
                raise
            await self.settle()
            stray = host_of(await self.astray())
            if stray and stray not in self.hosts:
                return not_allowed(stray)
            return f"{url} did not open: {first_line(error)}"
        await asyncio.sleep(self.settle_seconds)
        return ""

    async def replace(self, url: str) -> None:
        """Open a URL in the place of the page at hand: going back leads to the one before both."""
        async with self.page.expect_navigation(wait_until="domcontentloaded", timeout=0):
            await self.page.evaluate("url => { setTimeout(() => location.replace(url)) }", url)
        await self.settle()

    async def stop(self) -> None:
        """Give up on a page that does not come; what has come of it stays."""
        await self.session.send("Page.stopLoading")
        self.navigation.end()

    async def astray(self) -> str:
        """The address that the tab should not be on: one that did not open, or on a host that is not allowed."""
        url = self.page.url
        if url.startswith("chrome-error:"):
            history = await self.session.send("Page.getNavigationHistory")
            return history["entries"][history["currentIndex"]]["url"]
        return url if url.startswith(("http:", "https:")) and host_of(url) not in self.hosts else ""

    async def move(self, by: int) -> str:
        """Go back (-1) or forward (1) in the tab's history. Returns why it cannot be, or an empty string."""
        history = await self.session.send("Page.getNavigationHistory")
        index = history["currentIndex"] + by
        if not 0 <= index < len(history["entries"]):
            return "there is no page to go " + ("back" if by < 0 else "forward") + " to"
        self.navigation.expect()
        await self.session.send("Page.navigateToHistoryEntry", {"entryId": history["entries"][index]["id"]})
        await self.settle()
        return ""

    async def settle(self) -> None:
        """Wait until the page that has begun to load, if any, is there."""
        await self.navigation.over()
        if self.settle_seconds:
            await asyncio.sleep(self.settle_seconds)
            await self.navigation.over()

    async def observe(self, max_elements: int) -> Observation:
        """The page as it stands; afterwards `keys` maps its ids 1..n to DOM nodes."""
        for _ in range(3):
            await self.settle()
            nodes = (await self.session.send("Accessibility.getFullAXTree"))["nodes"]
            facts = {p["name"]: p["value"].get("value") for p in nodes[0].get("properties", ())}
            if not self.navigation.pending:
                break
        self.title, self.url = nodes[0].get("name", {}).get("value", ""), facts.get("url") or self.page.url
        page, self.keys = read_page(from_chromium(nodes), self.title, self.url, max_elements)
        return page

    async def act(self, action: Action) -> str:
        """Do an action on this page. Returns why it did nothing, or an empty string."""
        match action.kind:
            case "click" | "type" | "select" | "hover":
                error = await self._on_element(action)
            case "press":
                error = await self._press(action.text)
            case "scroll":
                down = {"down": 1, "up": -1}.get(action.text, 1)
                await self.page.evaluate(f"window.scrollBy(0, {down} * window.innerHeight * 0.8)")
                error = ""
            case "goto":
                error = await self.goto(action.text if "://" in action.text else f"http://{action.text}")
            case "go_back" | "go_forward":
                error = await self.move(-1 if action.kind == "go_back" else 1)
        await self.settle()
        return self.told(error)

    def told(self, error: str) -> str:
        """An error, if any, with what the page did unasked since this was last called."""
        notes, self.notes = self.notes, []
        return "; ".join(filter(None, [error, *notes]))

    async def _on_element(self, action: Action) -> str:
        try:
            node = await self.session.send("DOM.resolveNode", {"backendNodeId": self.keys[action.element_id - 1]})
        except PlaywrightError as error:
            if "No node" in str(error):
                return "the element is gone"
            raise
        said = await self._call(node["object"]["objectId"], action)
        if isinstance(said, str):
            return {"no option": no_option(action), "form not sent": NOT_SENT}.get(said, said)
        if action.kind == "hover":
            await self.session.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": said[0], "y": said[1]})
        elif action.kind == "type":
            if action.text:
                await self.session.send("Input.insertText", {"text": action.text})
            if action.press_enter:
                return await self._press("Enter")
        return ""

    async def _call(self, object_id: str, action: Action) -> Any:
        arguments = [{"value": value} for value in (action.kind, action.text, self.hosts)]
        call = {"objectId": object_id, "functionDeclaration": ACT, "arguments": arguments}
        try:
            answer = await self.session.send(
                "Runtime.callFunctionOn", call | {"awaitPromise": True, "returnByValue": True, "userGesture": True}
            )
        except PlaywrightError as error:
            if left_page(error):
                return None
            raise
        if "exceptionDetails" in answer:
            return answer["exceptionDetails"].get("exception", {}).get("description", "the page's script failed")
        return answer["result"].get("value")

    async def _press(self, keys: str) -> str:
        names = [key.strip() for key in keys.split("+")]
        combination = "+".join({"ctrl": "Control", "esc": "Escape"}.get(n.lower(), n) for n in names)
        try:
            invalid = keys == "Enter" and await self.page.evaluate(
                "() => { const f = document.activeElement?.tagName === 'INPUT' && document.activeElement.form;"
                " return !!f && !f.noValidate && !f.checkValidity() }"
            )
            await self.page.keyboard.press(combination)
            await self.page.evaluate(SETTLE)
        except PlaywrightError as error:
            if "Unknown key" in str(error):
                return f"unknown key: {keys!r}"
            if not left_page(error):
                raise
            return ""
        return NOT_SENT if invalid else ""


def first_line(error: BaseException) -> str:
    """What an exception says, in one line without Playwright's call log."""
    if "has been closed" in str(error):
        return "the page closed its own tab, or the browser stopped"
    return re.sub(r"^\w+(\.\w+)*: ", "", str(error).strip().split("\n")[0]) or type(error).__name__


def left_page(error: PlaywrightError) -> bool:
    """Whether a call was cut off because its page gave way to the next."""
    signs = ("navigated or closed", "context was destroyed", "Cannot find context", "Promise was collected")
    return any(sign in str(error) for sign in signs) and "has been closed" not in str(error)


def is_refusal(error: PlaywrightError) -> bool:
    """Whether a page did not open for a reason of its own (no such host, a download), with the tab still alive."""
    return any(sign in str(error) for sign in ("net::ERR", "Download is starting", "interrupted by another", "Timeout"))


def host_of(url: str) -> str:
    """The host of a web address, with its port unless that is the usual one; empty where it has none."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return ""
    host = f"[{split.hostname}]" if ":" in (split.hostname or "") else split.hostname or ""
    return host if port in (None, {"http": 80, "https": 443}.get(split.scheme)) else f"{host}:{port}"


def hosts_of(urls: Iterable[str]) -> list[str]:
    """The hosts of web addresses, sorted, each once."""
    return sorted({host for url in urls if (host := host_of(url))})


async def quietly(work: Coroutine, seconds: float = 5.0) -> None:
    """Do closing work whose failure no longer matters."""
    try:
        await asyncio.wait_for(work, seconds)
    except Exception:  # whatever is being closed may be gone already
        return
