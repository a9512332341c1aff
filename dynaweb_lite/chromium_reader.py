"""What evaluators read from a page in Chromium: one fixed function answers locators, and they arrive as data.

No text of a task file is executed: names of properties and methods are looked up only if the parser let them through,
and it lets through the few that read, and `click` for preparing a page.
"""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import Page

from dynaweb_lite.page_reader import read_json

STYLED = """
() => {
  const styles = [...document.querySelectorAll("link[rel~=stylesheet]")].filter(link => !link.sheet && !link.disabled);
  const loaded = styles.map(link => new Promise(done => ["load", "error"].map(e => link.addEventListener(e, done))));
  return Promise.race([Promise.all(loaded).then(() => null), new Promise(done => setTimeout(done, 1000))]);
}
"""
"""Waits for style sheets, a second at most: without them the text of a page has its line breaks elsewhere."""

ANSWER = """
tree => {
  const names = new Map();
  const value = tree => {
    const [kind, left, right] = tree;
    if (kind === "chain") return chain(left, right);
    if (kind === "or") return value(left) || value(right);
    if (kind === "plus") return value(left) + value(right);
    throw new TypeError("no value in " + kind);
  };
  const start = ([kind, what]) => {
    if (kind === "document") return document;
    if (kind === "string") return what;
    if (kind === "name") return names.get(what);
    return kind === "spread" ? [...value(what)] : value(what);
  };
  const call = (object, name, parts) => {
    if (name === "map") return object.map(item => (names.set(parts[0][1], item), value(parts[0][2])));
    return object[name](...parts.map(value));
  };
  const chain = (first, links) => {
    let object = start(first);
    for (const [kind, name, ...rest] of links) {
      const optional = rest.at(-1);
      if (optional && (object === null || object === undefined)) return undefined;
      object = kind === "call" ? call(object, name, rest[0]) : object[name];
    }
    return object;
  };
  try {
    const found = value(tree) ?? null;
    return {value: found instanceof Node ? "[object]" : found};
  } catch (error) {
    return {error: String(error)};
  }
}
"""

FETCH = """
async ([url, method, headers, body]) => {
  const answer = await fetch(url, {method, headers, body});
  return [answer.status, await answer.text()];
}
"""


async def answer(page: Page, tree: list) -> Any:
    """The value of a locator on the page. Raises LookupError where its JavaScript would throw."""
    await page.evaluate(STYLED)
    said = await page.evaluate(ANSWER, tree)
    if "error" in said:
        raise LookupError(said["error"])
    return said["value"]


async def visible_text(page: Page) -> str:
    """The text that the page shows."""
    await page.evaluate(STYLED)
    return await page.evaluate("document.body?.innerText ?? ''")


async def fetch(page: Page, method: str, url: str, headers: dict[str, str], data: Any = None) -> tuple[int, Any]:
    """Status and JSON of a request from the page, with its site's cookies; the URL must be of the same site."""
    body = None if data is None else json.dumps(data)
    status, text = await page.evaluate(FETCH, [url, method, headers, body])
    return status, read_json(text)
