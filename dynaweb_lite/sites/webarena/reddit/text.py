"""How the forum site writes links, times, numbers and pictures: functions for its templates."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from dynaweb_lite.sites.webarena.reddit.content import DAY, NOW
from dynaweb_lite.sites.webarena.reddit.words import slugify


def submission_url(row: sqlite3.Row) -> str:
    """Where a submission stands; `row` has forum, id and title."""
    return f"/f/{quote(row['forum'])}/{row['id']}/{slugify(row['title'])}"


def comment_url(row: sqlite3.Row) -> str:
    """The permanent link of a comment; `row` has forum, submission_id and id."""
    return f"/f/{quote(row['forum'])}/{row['submission_id']}/-/comment/{row['id']}"


def ago(created: int) -> str:
    """How long ago something was written."""
    seconds = max(NOW - created, 0)
    for unit, size in (("year", 365 * DAY), ("month", 30 * DAY), ("day", DAY), ("hour", 3600), ("minute", 60)):
        if (count := seconds // size) > 0:
            return f"{count} {plural(count, unit)} ago"
    return "just now"


def on_day(created: int) -> str:
    """A date and time as in 29 March 2023 at 14:05."""
    moment = datetime.fromtimestamp(created, UTC)
    return f"{moment.day} {moment:%B %Y} at {moment:%H:%M}"


def plural(count: int, noun: str) -> str:
    """A noun after a number."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """A number with its noun, as in 3 comments."""
    return f"{count} {plural(count, noun)}"


def host(url: str) -> str:
    """The host of a link; empty for one within the site."""
    return urlsplit(url).netloc


def picture(url: str) -> str:
    """A drawing that stands for a photo, as a data: URI; a function of the photo's URL."""
    digest = hashlib.sha256(url.encode()).digest()
    sky, ground, sun = (
        f"hsl({digest[i] * 360 // 256} {25 + digest[i + 3] % 25}% {light}%)" for i, light in ((0, 72), (1, 35), (2, 60))
    )
    hills = "".join(f"L{x * 40} {130 + digest[6 + x] % 60}" for x in range(11))
    x, y, radius = 60 + digest[20], 40 + digest[21] % 50, 18 + digest[22] % 20
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 240"><rect width="400" height="240" fill="{sky}"/>'
        f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{sun}"/>'
        f'<path d="M0 240{hills}L400 240Z" fill="{ground}"/></svg>'
    )
    return "data:image/svg+xml," + quote(svg)


FUNCTIONS: dict[str, Callable] = {
    "ago": ago,
    "on_day": on_day,
    "counted": counted,
    "host": host,
    "picture": picture,
    "submission_url": submission_url,
    "comment_url": comment_url,
}
