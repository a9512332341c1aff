"""What evaluators ask of a page, and what they say when a task cannot be scored here."""

from __future__ import annotations

import json
from typing import Any, Protocol


class NotScorable(ValueError):
    """The task asks for something that this evaluator does not have; the message says what to set or pass."""

    @property
    def info(self) -> dict[str, Any]:
        """What a world's last step says then."""
        return {"error": str(self), "not_scorable": True}


class PageReader(Protocol):
    """A loaded page, with or without a browser."""

    url: str

    def text(self) -> str:
        """The text that the page shows."""
        ...

    def content(self) -> str:
        """The page as HTML."""
        ...

    def locate(self, tree: list) -> Any:
        """The value of a locator read by `locators.parse_locator`. Raises LookupError where the page lacks it."""
        ...

    def prepare(self, tree: list) -> None:
        """Do what an entry of `prep_actions` says; nothing where the page lacks it."""
        ...

    def request(self, method: str, url: str, headers: dict[str, str], data: Any = None) -> tuple[int, Any]:
        """Status and JSON of a request to the page's own site, in the episode's session."""
        ...


def read_json(text: str) -> Any:
    """What a text holds as JSON, None for other text."""
    try:
        return json.loads(text)
    except ValueError:
        return None
