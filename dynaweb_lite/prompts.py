"""What the models read, as chat messages. One form for every model: the tiny one's chat template drops `system`.

policy       page + "Goal: …"                       -> thought, newline, action
world model  page + "Action: click [5] link 'Cart'" -> reason, newline, edit script (or the change in words)
second step  page + "Change: …" -> edit script, for changes in words
judge        page + "Goal: …" + "Answer: …" + "Done?"  -> yes | no
"""

from __future__ import annotations

from collections.abc import Sequence

from dynaweb_lite.actions import ActionError, describe_action, parse_action
from dynaweb_lite.observation import Observation
from dynaweb_lite.trajectory import Step

Message = dict[str, str]

POLICY_SYSTEM = (
    "You operate a web browser. You see the page as an accessibility tree with element ids in square brackets. "
    "Reply with one line of thought and then one line with one action: click [id], type [id] [text] [1], "
    "select [id] [option], scroll [down], goto [url], go_back, or stop [answer] when the goal is reached."
)
WORLD_MODEL_SYSTEM = (
    "You predict how a web page changes. You see a page and an action. Reply with one line that gives the reason, "
    "then the edit script that makes the next page: the new 'Tab …' line if it changes, '= [a] [b]' for lines a to b "
    "that stay, and every new line as role 'name' without an id. Reply only with the reason if nothing changes."
)
DESCRIBED_SYSTEM = (
    "You predict how a web page changes. You see a page and an action. Reply with one line that gives the reason, "
    "then say in words what goes and what comes, one place of the page a line. Reply only with the reason if nothing "
    "changes."
)
APPLY_SYSTEM = (
    "You apply a change to a web page. You see the page and the change in words. Reply with the edit script that makes "
    "the next page: the new 'Tab …' line if it changes, '= [a] [b]' for lines a to b that stay, and every new line as "
    "role 'name' without an id."
)
JUDGE_SYSTEM = (
    "You judge whether a web task is done. You see the last page, the goal and the agent's answer. Reply yes or no."
)


def user(content: str) -> Message:
    return {"role": "user", "content": content}


def assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def policy_messages(goal: str, steps: Sequence[Step], observation: Observation) -> list[Message]:
    """The whole episode so far as a chat: every page with the goal restated, every reply, then the page at hand."""
    messages = [{"role": "system", "content": POLICY_SYSTEM}]
    for step in steps:
        messages += [policy_turn(goal, step.observation), assistant(policy_reply(step.thought, step.action))]
    return [*messages, policy_turn(goal, observation)]


def policy_turn(goal: str, observation: Observation) -> Message:
    """A page, and the goal after it: a small model copies best from what it read last."""
    return user(f"{observation.text}\nGoal: {goal}")


def policy_reply(thought: str, action: str) -> str:
    return f"{thought}\n{action}" if thought else action


def split_reply(reply: str) -> tuple[str, str]:
    """Thought and action of a reply: the last line is the action, what stands before it the thought."""
    thought, _, action = reply.strip().rpartition("\n")
    return thought.strip(), action.strip()


def world_model_messages(observation: Observation, action: str, system: str = WORLD_MODEL_SYSTEM) -> list[Message]:
    """A page and an action, the element's label spelt out, so that its name stands next to where it is used."""
    try:
        described = describe_action(parse_action(action), observation)
    except ActionError:
        described = action
    page = observation.with_error("").text
    return [{"role": "system", "content": system}, user(f"{page}\nAction: {described}")]


def apply_change_messages(observation: Observation, change: str) -> list[Message]:
    """A page and a change in words, to be made into an edit script: the second step of a described change."""
    page = observation.with_error("").text
    return [{"role": "system", "content": APPLY_SYSTEM}, user(f"{page}\nChange: {change}")]


def world_model_reply(reason: str, change: str) -> str:
    return f"{reason}\n{change}" if change else reason


def judge_messages(goal: str, observation: Observation, answer: str) -> list[Message]:
    """The last page, the goal and the answer, as in the authors' repository: nothing of the history."""
    page = observation.with_error("").text
    return [{"role": "system", "content": JUDGE_SYSTEM}, user(f"{page}\nAnswer: {answer}\nGoal: {goal}\nDone?")]
