"""NNetNav's rows, one a step of a task, made into transitions and expert trajectories.

The prompt of a row holds the page, its URL, the objective and the actions before; the output a thought and an action.
The next page is the next step's. What was really done stands in the next step's history: where the output says
something else (outputs were partly rewritten afterwards), the history holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from dynaweb_lite.actions import Action
from dynaweb_lite.cleaning import Cleaned, Reason, place_action, read_action
from dynaweb_lite.observation import ObservationError, one_line
from dynaweb_lite.trajectory import Step, Trajectory, Transition
from dynaweb_lite.webarena_tree import ImportedPage, read_tree
from dynaweb_lite.worlds import answer_of

SECTIONS = ("OBSERVATION", "URL", "OBJECTIVE", "PREVIOUS ACTIONS")
REFUSALS = ("The previous prediction you issued", "Attempt to perf", "none")
"""How an entry of the history begins when nothing was done: no action in the reply, or no such element."""

_HEADING = re.compile(r"^(OBSERVATION|URL|OBJECTIVE|PREVIOUS ACTIONS?):", re.MULTILINE)
_TURN = re.compile(r"<\|start_header_id\|>\w+<\|end_header_id\|>\n?")
_SPECIAL = re.compile(r"<\|\w+\|>")
_SUMMARY = re.compile(r"In summary,|```")
_NUMBERED = re.compile(r"(\d+): ?(.*)")
_ON_ELEMENT = re.compile(r"(click|hover|type) \[(\d+)\](?: \[(.*)\])? where \[\2\] is")


@dataclass(frozen=True)
class _Row:
    """A row that is whole. `history`: the actions before this step; `page` None: there is none that can be read."""

    number: int
    task: str
    goal: str
    history: tuple[str, ...]
    page: ImportedPage | None
    output: str


@dataclass(frozen=True)
class _Done:
    """What was done in a step, with our ids, and whether the history had to say so."""

    action: Action
    thought: str
    corrected: bool


def clean_nnetnav(rows: Iterable[Mapping | None], max_elements: int) -> Cleaned:
    """Transitions of NNetNav rows, in the order of their tasks; None stands for a row that is no JSON."""
    cleaned, tasks, seen = Cleaned(), {}, set()
    for number, raw in enumerate(rows, 1):
        cleaned.rows += 1
        row = Reason.NOT_JSON if raw is None else _read_row(raw, number, max_elements, seen)
        if isinstance(row, Reason):
            cleaned.drop(row, number)
        else:
            cleaned.unreadable_lines += row.page.unreadable_lines if row.page else 0
            _file(row, tasks.setdefault(row.task, []))
    for attempts in tasks.values():
        for attempt in attempts:
            _clean_attempt([attempt[step] for step in sorted(attempt)], cleaned)
    return cleaned


def _read_row(raw: Mapping, number: int, max_elements: int, seen: set[int]) -> _Row | Reason:
    prompt, output, task = (raw.get(name) for name in ("prompt", "output", "task_name"))
    if not isinstance(prompt, str) or not isinstance(output, str) or task in (None, ""):
        return Reason.HALF_ROW
    sections = read_prompt(prompt)
    if not sections.get("OBJECTIVE") or "PREVIOUS ACTIONS" not in sections:
        return Reason.HALF_ROW
    key = hash((prompt, output, str(task)))
    if key in seen:
        return Reason.DUPLICATE
    seen.add(key)
    try:
        page = read_tree(sections.get("OBSERVATION", ""), sections.get("URL", ""), max_elements=max_elements)
    except ObservationError:
        page = None
    history = read_history(sections["PREVIOUS ACTIONS"])
    return _Row(number, str(task), one_line(sections["OBJECTIVE"]), history, page, _turns(output)[-1])


def _file(row: _Row, attempts: list[dict[int, _Row]]) -> None:
    """Put a row in its place: a task's rows may come in any order; a step that is there already begins an attempt."""
    if not attempts or len(row.history) in attempts[-1]:
        attempts.append({})
    attempts[-1][len(row.history)] = row


def read_prompt(prompt: str) -> dict[str, str]:
    """The sections of a prompt by their headings, in whatever order they come."""
    text = next((turn for turn in reversed(_turns(prompt)) if _HEADING.search(turn)), "")
    places: dict[str, re.Match] = {}
    for match in _HEADING.finditer(text):
        name = "PREVIOUS ACTIONS" if match[1].startswith("PREV") else match[1]
        places.setdefault(name, match)
    ends = [match.start() for match in places.values()][1:] + [len(text)]
    return {
        name: text[match.end() : end].strip("\n ") for (name, match), end in zip(places.items(), ends, strict=False)
    }


def _turns(text: str) -> list[str]:
    """What each turn of a chat says, without the chat template's special tokens."""
    return [_SPECIAL.sub("", turn) for turn in _TURN.split(text)]


def read_history(text: str) -> tuple[str, ...]:
    """Entries of a history, each on one line. The first of NNetNav's, "1: None", is no action and is left out."""
    entries: list[str] = []
    for line in text.split("\n"):
        match = _NUMBERED.fullmatch(line)
        if match and int(match[1]) == len(entries) + 1:
            entries.append(match[2])
        elif entries and _NUMBERED.match(text):
            entries[-1] += "\n" + line
        elif line.strip():
            entries.append(line)
    done = [one_line(entry) for entry in entries]
    return tuple(done[1:] if done[:1] == ["None"] else done)


def read_entry(entry: str) -> Action | None:
    """The action that an entry of a history tells of; None where nothing was done.

    WebArena writes the Enter after typing as white space at the end of the text.
    """
    if entry.startswith(REFUSALS):
        return None
    if match := _ON_ELEMENT.match(entry):
        text = match[3] or ""
        return Action(match[1], int(match[2]), text.rstrip(), match[1] != "type" or text.endswith(" "))
    return read_action(entry.replace("page_focus", "tab_focus", 1))


def read_output(output: str) -> tuple[Action | None, str]:
    """The action of an output, and the thought before it on one line."""
    return read_action(output), one_line(_SUMMARY.split(output)[0])


def _clean_attempt(rows: list[_Row], cleaned: Cleaned) -> None:
    """Steps of one attempt at a task, in order, into transitions or reasons; a whole attempt into a trajectory too."""
    steps: list[Step] = []
    for row, following in zip_longest(rows, rows[1:]):
        done = _done(row, following)
        if isinstance(done, Reason):
            cleaned.drop(done, row.number)
            continue
        cleaned.corrected += done.corrected
        page, action = row.page.observation, str(done.action)
        if done.action.kind == "stop":
            steps.append(Step(page, action, page, done.thought, reward=1.0))
            cleaned.drop(Reason.STOP, row.number)
        else:
            steps.append(Step(page, action, following.page.observation, done.thought))
            cleaned.transitions.append(Transition(page, action, following.page.observation))
    stops = sum(step.reward for step in steps)
    if len(steps) == len(rows) and stops == 1 and not rows[0].history:  # only a stop can be the last
        cleaned.trajectories.append(_trajectory(rows, steps))


def _done(row: _Row, following: _Row | None) -> _Done | Reason:
    """What was done in a step whose next page is known (unless it stopped), or why the row teaches nothing."""
    if row.page is None:
        return Reason.NO_PAGE
    goes_on = following is not None and len(following.history) == len(row.history) + 1
    if goes_on and following.goal != row.goal:
        return Reason.OBJECTIVE
    if goes_on and following.history[:-1] != row.history:
        return Reason.HISTORY
    done = _settle(row, following.history[-1] if goes_on else None)
    if isinstance(done, Reason) or done.action.kind == "stop":
        return done
    return done if goes_on and following.page else Reason.NO_NEXT


def _settle(row: _Row, entry: str | None) -> _Done | Reason:
    """The action of the output, or of the history where it says something else."""
    said, thought = read_output(row.output)
    told = read_entry(entry) if entry is not None else None
    if entry is not None and entry.startswith(REFUSALS):
        return Reason.REFUSED
    action = told or said
    if action is None:
        return Reason.UNPARSABLE
    placed = place_action(action, row.page)
    if isinstance(placed, Reason):
        return Reason.HISTORY if placed is Reason.ABSENT and said != action else placed
    about_it = said and (said.kind, said.element_id) == (action.kind, action.element_id)
    return _Done(placed, thought if about_it else "", not _same(said, action))


def _same(said: Action | None, told: Action) -> bool:
    return said is not None and replace(said, text=one_line(said.text)) == replace(told, text=one_line(told.text))


def _trajectory(rows: list[_Row], steps: list[Step]) -> Trajectory:
    provenance = {"from": "NNetNav", "rows": [rows[0].number, rows[-1].number]}
    return Trajectory(rows[0].task, rows[0].goal, steps, "expert", True, False, answer_of(steps[-1].action), provenance)
