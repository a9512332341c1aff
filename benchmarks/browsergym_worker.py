"""Runs inside BrowserGym's own environment: plays a MiniWoB++ task as told by JSON lines, and times it here.

    {"do": "reset", "seed": 3}                            -> {"seconds", "goal", "page_seed"}
    {"do": "click", "role": "button", "name": "Submit"}   -> {"seconds", "reward", "error"}

Started with the task's name, the path of a Chromium, and keywords of BrowserGym's environment as JSON. Ends when its
input ends. MINIWOB_URL says where the pages are.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time

import browsergym.miniwob  # noqa: F401  registers the tasks
import gymnasium
import numpy
from playwright.sync_api import BrowserType


def main() -> None:
    task, chromium, keywords = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not stand between the answers
    BrowserType.launch = functools.partialmethod(BrowserType.launch, executable_path=chromium)
    environment = gymnasium.make(f"browsergym/miniwob.{task}", headless=True, **keywords)
    nodes: list[dict] = []
    try:
        for line in sys.stdin:
            answer, nodes = reply(environment, nodes, json.loads(line))
            print(json.dumps(answer), file=answers, flush=True)
    finally:
        environment.close()


def reply(environment: gymnasium.Env, nodes: list[dict], request: dict) -> tuple[dict, list[dict]]:
    """The answer to a request, and the accessibility nodes that the page has now."""
    if request["do"] == "reset":
        began = time.perf_counter()
        page, _ = environment.reset(seed=request["seed"])
        seconds = time.perf_counter() - began
        page_seed = int(numpy.random.RandomState(request["seed"]).randint(0, 1000000))  # as BrowserGym draws it
        answer = {"seconds": seconds, "goal": page["goal"], "page_seed": page_seed}
    else:
        action = f"click({json.dumps(find(nodes, request['role'], request['name']))})"
        began = time.perf_counter()
        page, reward, *_ = environment.step(action)
        seconds = time.perf_counter() - began
        answer = {"seconds": seconds, "reward": float(reward), "error": page["last_action_error"]}
    return answer, page["axtree_object"]["nodes"]


def find(nodes: list[dict], role: str, name: str) -> str:
    """BrowserGym's id of the element with this role and name. Raises LookupError when there is none."""
    for node in nodes:
        if node["role"]["value"] == role and node["name"]["value"] == name and node.get("browsergym_id"):
            return node["browsergym_id"]
    raise LookupError(f"BrowserGym's page has no {role} {name!r}")


if __name__ == "__main__":
    main()
