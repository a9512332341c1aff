"""When the page that a tab is on its way to is there: told by the load itself, not by the end of an earlier one.

A page that still loads pictures or scripts goes on doing so while the next one is fetched, and reports its own end
meanwhile. So each load is known by its id (DevTools: loaderId), from its start to its DOMContentLoaded.
"""

from __future__ import annotations

import asyncio

from playwright.async_api import CDPSession

DUE, REQUESTED = "due", "requested"
"""A load that has no id yet: one that must come, and one that the page asked for."""
DROPPED_SECONDS = 2.0
"""A load that the page asked for and that has not begun after this will not begin."""
ABORTED_SECONDS = 0.2
"""A load that is broken off is over; this is how long it may take to be told why, as when it is a download."""


class Navigation:
    """The load that the main frame of a tab is busy with, if any. `watch` it before anything happens in the tab."""

    def __init__(self, session: CDPSession, main_frame: str) -> None:
        self.session, self.main_frame = session, main_frame
        self.pending = ""
        self._over = asyncio.Event()

    async def watch(self) -> None:
        """Listen to the tab from now on."""
        self.session.on("Page.frameRequestedNavigation", self._requested)
        self.session.on("Page.frameStartedNavigating", self._started)
        self.session.on("Page.lifecycleEvent", self._lifecycle)
        self.session.on("Page.navigatedWithinDocument", self._within)
        self.session.on("Network.loadingFailed", self._failed)
        self.session.on("Page.downloadWillBegin", lambda _: self.end())
        await self.session.send("Page.enable")
        await self.session.send("Network.enable")
        await self.session.send("Page.setLifecycleEventsEnabled", {"enabled": True})

    def expect(self, load: str = DUE) -> None:
        """A load is about to begin."""
        self.pending = load
        self._over.clear()

    def end(self) -> None:
        """What was awaited is there, or will not come."""
        self.pending = ""
        self._over.set()

    async def over(self) -> None:
        """Wait for the load that is going on, if any, and for those that follow it at once."""
        while self.pending:
            try:
                await asyncio.wait_for(self._over.wait(), DROPPED_SECONDS if self.pending == REQUESTED else None)
            except TimeoutError:
                if self.pending == REQUESTED:
                    self.end()

    def _requested(self, event: dict) -> None:
        if event["frameId"] == self.main_frame and event["disposition"] == "currentTab" and not self.pending:
            self.expect(REQUESTED)

    def _started(self, event: dict) -> None:
        if event["frameId"] == self.main_frame:
            self.expect(event["loaderId"])

    def _lifecycle(self, event: dict) -> None:
        if event["name"] == "DOMContentLoaded" and event["loaderId"] == self.pending:
            self.end()

    def _within(self, event: dict) -> None:
        if event["frameId"] == self.main_frame:
            self.end()

    def _failed(self, event: dict) -> None:
        """A download, an empty answer, or a stop; for other failures Chromium shows a page of its own."""
        if event["requestId"] == self.pending and event["errorText"] == "net::ERR_ABORTED":
            asyncio.get_running_loop().call_later(ABORTED_SECONDS, self._give_up, self.pending)

    def _give_up(self, load: str) -> None:
        if self.pending == load:
            self.end()
