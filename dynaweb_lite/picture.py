"""Pictures of views: HTML drawn by the headless Chromium that the project uses anyway."""

from __future__ import annotations

import asyncio

from playwright.async_api import async_playwright

from dynaweb_lite.browser import Worker
from dynaweb_lite.chromium import NOT_FOUND, BrowserError, find_chromium, switches
from dynaweb_lite.views import Html


def html_to_png(view: Html, width: int = 1100, dark: bool = False) -> bytes:
    """A view as PNG, as high as it needs to be. Nothing is loaded from elsewhere. Raises BrowserError."""
    worker = Worker()
    try:
        return worker.run(asyncio.wait_for(_draw(view.html, width, "dark" if dark else "light"), 60))
    finally:
        worker.close()


async def _draw(html: str, width: int, scheme: str) -> bytes:
    path = find_chromium()
    if path is None:
        raise BrowserError(NOT_FOUND)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=switches(["nowhere.test"], 1))
        page = await browser.new_page(viewport={"width": width, "height": 200}, color_scheme=scheme)
        await page.set_content(f"<!doctype html><meta charset=utf-8><body style='margin:10px'>{html}</body>")
        picture = await page.screenshot(full_page=True)
        await browser.close()
    return picture
