"""Scripts: WebArena actions that name elements instead of numbering them, and the policy that plays them.

    click [link 'Forums']              type [searchbox 'Search'] [usb wifi] [1]
    click [button 'Edit' #2]           select [combobox 'Sort by'] [Price]
    click [link 'Epson WorkForce…']    stop [42]

`#2` is the second of that role and name, a final … makes the name a prefix, all else is the action language itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dynaweb_lite.observation import Element, Observation
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import Decision

_STEP = re.compile(r"(\w+) \[(\w+) '(.*?)'(?: #(\d+))?\](.*)", re.DOTALL)


class ScriptError(ValueError):
    """A script does not fit the page that it is on; the message says which element is missing."""


def find_named(page: Observation, role: str, name: str, number: int = 1) -> Element:
    """The number-th element of a role and name. Raises ScriptError when the page has none."""
    if name.endswith("…"):
        found = [e for e in page.elements if e.role == role and e.name.startswith(name[:-1])]
    else:
        found = [e for e in page.elements if e.role == role and e.name == name]
    if len(found) < number:
        raise ScriptError(f"{len(found)} of {number} × {role} '{name}' on {page.url}")
    return found[number - 1]


def resolve_step(step: str, page: Observation) -> Decision:
    """A script's step as an action on this page, with the thought that names its element. Raises ScriptError."""
    match = _STEP.fullmatch(step)
    if not match:
        return Decision(step)
    kind, role, name, number, rest = match.groups()
    element = find_named(page, role, name, int(number or 1))
    return Decision(f"{kind} [{element.id}]{rest}", f"{kind.capitalize()} the {role} '{element.name}'.")


class ScriptPolicy:
    """Plays the script of each task. One that does not fit its page stops there; `errors` says why, by task id."""

    def __init__(self, scripts: Mapping[int | str, Sequence[str]]):
        self.scripts = scripts
        self.errors: dict[int | str, str] = {}

    def act(self, episodes: Sequence[Trajectory], observations: Sequence[Observation]) -> list[Decision]:
        return [self.decide(episode, page) for episode, page in zip(episodes, observations, strict=True)]

    def decide(self, episode: Trajectory, page: Observation) -> Decision:
        script, number = self.scripts[episode.task_id], len(episode.steps)
        if page.last_action_error:
            self.errors[episode.task_id] = f"step {number}: {page.last_action_error}"
        try:
            return resolve_step(script[number], page) if number < len(script) else Decision("stop []")
        except ScriptError as error:
            self.errors[episode.task_id] = f"step {number + 1}: {error}"
            return Decision("stop []")
