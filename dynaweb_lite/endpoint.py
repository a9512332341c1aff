"""A chat model behind an OpenAI-compatible endpoint: asked many things at once, within its limits, and counted.

    endpoint = Endpoint("http://localhost:8000/v1", "gpt-oss-120b", parallel=8, requests_per_minute=300)
    replies = endpoint.chat([[user("…")], …])           # a Reply or a Failure for each chat
    print(endpoint.spent)                               # requests, retries, failures, tokens, cost

What may pass by itself (a limit reached, a server that is down) is tried again after a pause; the server's own
Retry-After holds. The key is read from an environment variable when a request is sent, and stands nowhere else.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from dynaweb_lite.observation import one_line
from dynaweb_lite.prompts import Message

RETRIED = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529))
"""Statuses that may pass by themselves."""
MAX_DETAIL = 500


class EndpointError(ValueError):
    """An endpoint is set up wrongly; the message says what to do."""


@dataclass(frozen=True)
class Reply:
    """What the model wrote. `cut_off`: it ran into its limit of tokens.

    `logprobs`: natural logarithms of its tokens' probabilities, None where not asked for or not given.
    """

    text: str
    cut_off: bool = False
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Failure:
    """No reply came, after `tries` requests; `why` says how the last one ended, `detail` what the server said to it."""

    why: str
    tries: int
    detail: str = ""


@dataclass
class Spent:
    """What an endpoint was asked, and what it cost, in `currency` at prices for a million tokens.

    `requests` counts every one that was sent, `retries` those that repeat one, `failures` chats without a reply.
    Tokens are those that the server reports; `unmetered` counts replies without a report.
    """

    prompt_price: float = 0.0
    completion_price: float = 0.0
    currency: str = "$"
    requests: int = 0
    replies: int = 0
    retries: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unmetered: int = 0

    @property
    def cost(self) -> float:
        return (self.prompt_tokens * self.prompt_price + self.completion_tokens * self.completion_price) / 1e6

    def __str__(self) -> str:
        parts = [
            f"{self.requests:,} requests ({self.retries:,} of them retries), {self.replies:,} replies, "
            f"{self.failures:,} failures; {self.prompt_tokens:,} prompt and {self.completion_tokens:,} reply tokens"
        ]
        if self.prompt_price or self.completion_price:
            parts.append(f"{self.currency}{self.cost:.4f}")
        if self.unmetered:
            parts.append(f"{self.unmetered:,} replies came without a count of tokens")
        return "; ".join(parts)


@dataclass(eq=False)
class Endpoint:
    """A model at `url` (up to /v1). All threads that ask through one Endpoint share its limits and counts.

    `key_variable`: the environment variable that holds the key, where one is needed.
    `extra`: more fields of the request's body, such as {"reasoning_effort": "low"}.
    Raises EndpointError for what cannot be an endpoint.
    """

    url: str
    model: str
    key_variable: str = ""
    timeout_seconds: float = 120.0  # for the whole answer
    tries: int = 5
    pause_seconds: float = 1.0  # after the first failure; doubles with each
    max_pause_seconds: float = 60.0  # a server that asks for more is not waited for
    requests_per_minute: float = 0.0  # 0: no limit but the server's
    parallel: int = 4
    extra: Mapping[str, object] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise EndpointError(f"{self.url!r} is no address such as http://localhost:8000/v1")
        if not self.model:
            raise EndpointError("an endpoint needs the name of a model")
        if self.tries < 1 or self.parallel < 1 or self.timeout_seconds <= 0 or self.requests_per_minute < 0:
            raise EndpointError("tries and parallel must be 1 or more, timeout_seconds above 0")
        self._lock = threading.Lock()
        self._next_start = self._held_until = 0.0

    @classmethod
    def from_environment(cls, prefix: str, **settings: object) -> Endpoint | None:
        """The endpoint that {prefix}_URL, {prefix}_MODEL and {prefix}_KEY name; None where there is no address.

        Raises EndpointError when there is an address without a model, or no web address.
        """
        url, model = os.environ.get(f"{prefix}_URL", ""), os.environ.get(f"{prefix}_MODEL", "")
        if not url:
            return None
        if not model:
            raise EndpointError(f"{prefix}_URL is set, but {prefix}_MODEL is not")
        return cls(url, model, f"{prefix}_KEY", **settings)

    def chat(
        self,
        chats: Sequence[Sequence[Message]],
        temperature: float = 0.0,
        top_p: float = 1.0,
        max_tokens: int | None = None,
        logprobs: bool = False,
    ) -> list[Reply | Failure]:
        """An answer to each chat [B], in their order."""
        answers = dict(self.stream(chats, temperature, top_p, max_tokens, logprobs))
        return [answers[i] for i in range(len(answers))]

    def stream(
        self,
        chats: Iterable[Sequence[Message]],
        temperature: float = 0.0,
        top_p: float = 1.0,
        max_tokens: int | None = None,
        logprobs: bool = False,
    ) -> Iterator[tuple[int, Reply | Failure]]:
        """(index, answer) of each chat as they come. Chats are taken from their iterable only when their turn comes."""
        options = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "logprobs": logprobs or None}
        body = {"model": self.model, **{k: v for k, v in options.items() if v is not None}, **self.extra}
        executor, stopped = ThreadPoolExecutor(self.parallel), threading.Event()
        running: dict[Future, int] = {}
        try:
            for i, messages in enumerate(chats):
                running[executor.submit(self._answer, {**body, "messages": list(messages)}, stopped)] = i
                if len(running) > self.parallel:
                    yield from _finished(running)
            while running:
                yield from _finished(running)
        finally:
            stopped.set()  # after Ctrl-C no thread sits out a pause
            executor.shutdown(wait=False, cancel_futures=True)

    def _answer(self, body: dict, stopped: threading.Event) -> Reply | Failure:
        """Ask until there is a reply, the tries are used up, or trying again is of no use."""
        why, detail, sent = "", "", 0
        for sent in range(1, self.tries + 1):
            self._wait_for_start(stopped)
            if stopped.is_set():
                return Failure("stopped", sent - 1)
            self._count(requests=1, retries=int(sent > 1))
            why, detail, pause = "", "", self.pause_seconds * 2 ** (sent - 1) * (1 + random.random() / 4)
            try:
                return self._read(self._request(body))
            except urllib.error.HTTPError as error:
                why, detail, asked = f"status {error.code}", self._said(error), _retry_after(error.headers)
                if error.code not in RETRIED or asked > self.max_pause_seconds:
                    why += f", which asks to wait {asked:.0f} seconds" if asked else ""
                    break
                pause = max(asked, min(pause, self.max_pause_seconds))
                self._hold_back(asked)
            except (OSError, http.client.HTTPException) as error:
                why = str(getattr(error, "reason", error)) or type(error).__name__
            except (ValueError, LookupError, TypeError, AttributeError):
                why = "an answer in another form than a chat completion"
            if sent < self.tries:
                stopped.wait(min(pause, self.max_pause_seconds))
        self._count(failures=1)
        return Failure(why, sent, detail)

    def _request(self, body: dict) -> dict:
        """Send one request. The whole answer must come within the timeout, however slowly it drips."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        address = self.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        deadline, parts = time.monotonic() + self.timeout_seconds, []
        with _OPENER.open(request, timeout=self.timeout_seconds) as response:
            while part := response.read1(1 << 16):
                parts.append(part)
                if time.monotonic() > deadline:
                    raise TimeoutError("timed out")
        return json.loads(b"".join(parts))

    @property
    def _key(self) -> str:
        return os.environ.get(self.key_variable, "") if self.key_variable else ""

    def _said(self, error: urllib.error.HTTPError) -> str:
        """The beginning of what a server says with an error status, without the key, should it repeat it."""
        with error:
            try:
                text = error.read(MAX_DETAIL).decode(errors="replace")
            except (OSError, http.client.HTTPException):
                return ""
        return one_line(text.replace(self._key, "…") if self._key else text)

    def _read(self, answer: dict) -> Reply:
        choice = answer["choices"][0]
        text = choice["message"]["content"]
        if not isinstance(text, str):
            raise TypeError("no text")
        found = (choice.get("logprobs") or {}).get("content")
        logprobs = tuple(float(token["logprob"]) for token in found) if found else None
        usage = answer.get("usage") or {}
        asked, written = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
        metered = isinstance(asked, int) and isinstance(written, int)
        self._count(replies=1, unmetered=int(not metered))
        if metered:
            self._count(prompt_tokens=asked, completion_tokens=written)
        return Reply(text, choice.get("finish_reason") == "length", logprobs)

    def _count(self, **numbers: int) -> None:
        with self._lock:
            for name, number in numbers.items():
                setattr(self.spent, name, getattr(self.spent, name) + number)

    def _wait_for_start(self, stopped: threading.Event) -> None:
        """Starts of requests are spread evenly over the minute, and none falls into a time that the server barred."""
        with self._lock:
            start = max(time.monotonic(), self._next_start)
            self._next_start = start + (60 / self.requests_per_minute if self.requests_per_minute else 0)
        while (pause := max(start, self._held_until) - time.monotonic()) > 0 and not stopped.wait(pause):
            pass

    def _hold_back(self, seconds: float) -> None:
        """A server that asks one request to wait means all of them."""
        with self._lock:
            self._held_until = max(self._held_until, time.monotonic() + seconds)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _finished(running: dict[Future, int]) -> Iterator[tuple[int, Reply | Failure]]:
    """(index, answer) of what is done by now, at least one; taken out of `running`."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        yield running.pop(future), future.result()


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that Retry-After asks for, as a number or as a date; 0 where it asks for none."""
    text = (headers.get("Retry-After") or "").strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
