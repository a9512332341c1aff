"""Cleaning of imported data: which rows become transitions, which do not, and why.

The paper drops missing observations, invalid actions and inconsistent states. Here every row that is read ends in one
of two places, a transition or a reason, so the table's counts add up to the rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from dynaweb_lite.actions import Action, ActionError, parse_action
from dynaweb_lite.trajectory import Trajectory, Transition
from dynaweb_lite.webarena_tree import ImportedPage


class Reason(StrEnum):
    """Why a row is no transition, in the order in which the reasons are looked for."""

    NOT_JSON = "not JSON"
    HALF_ROW = "half a row: a field is missing"
    DUPLICATE = "duplicate of an earlier row"
    NO_PAGE = "missing observation: no page can be read"
    OBJECTIVE = "inconsistent: the objective changes in mid-task"
    HISTORY = "inconsistent: the next row's history does not go on from here"
    UNPARSABLE = "invalid action: none can be read"
    REFUSED = "invalid action: refused, as the next row's history says"
    ABSENT = "invalid action: its element is not on the page"
    HIDDEN = "invalid action: on an element that our pages leave out"
    STOP = "stop: changes no page"
    NO_NEXT = "no next page: the task's rows end here, or the next is missing"


@dataclass
class Cleaned:
    """What an import brought. `rows` = len(`transitions`) + the sum of `dropped`.

    `first_seen`: the number (from 1) of the first row dropped for a reason. `corrected`: rows whose action was taken
    from the next row's history. `unreadable_lines`: lines of pages that are no elements and were passed over.
    """

    rows: int = 0
    transitions: list[Transition] = field(default_factory=list)
    trajectories: list[Trajectory] = field(default_factory=list)
    dropped: Counter[Reason] = field(default_factory=Counter)
    first_seen: dict[Reason, int] = field(default_factory=dict)
    corrected: int = 0
    unreadable_lines: int = 0

    def drop(self, reason: Reason, row: int) -> None:
        """Count a row that is no transition."""
        self.dropped[reason] += 1
        self.first_seen[reason] = min(row, self.first_seen.get(reason, row))

    def table(self) -> list[dict]:
        """A row for what was kept and for each reason that occurred: {outcome, n, share, first_row}."""
        counts = [("kept: transitions", len(self.transitions), None)]
        counts += [(str(r), self.dropped[r], self.first_seen[r]) for r in Reason if self.dropped[r]]
        counts.append(("all rows", self.rows, None))
        return [
            {"outcome": outcome, "n": n, "share": round(n / self.rows, 4) if self.rows else 0.0, "first_row": first}
            for outcome, n, first in counts
        ]

    def __str__(self) -> str:
        rows = [("outcome", "rows", "share", "first")]
        rows += [
            (row["outcome"], f"{row['n']:,}", f"{row['share']:.1%}", f"{row['first_row'] or ''}")
            for row in self.table()
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        lines.append(
            f"{len(self.trajectories):,} whole trajectories; {self.corrected:,} actions taken from the history; "
            f"{self.unreadable_lines:,} unreadable lines passed over"
        )
        return "\n".join(line.rstrip() for line in lines)


def read_action(text: str) -> Action | None:
    """The action in a text, or None."""
    try:
        return parse_action(text)
    except ActionError:
        return None


def place_action(action: Action, page: ImportedPage) -> Action | Reason:
    """The action with our id of its element, or why it is no action on this page."""
    if action.element_id is None:
        return action
    key = str(action.element_id)
    if key in page.ids:
        return Action(action.kind, page.ids[key], action.text, action.press_enter)
    return Reason.HIDDEN if key in page.hidden else Reason.ABSENT
