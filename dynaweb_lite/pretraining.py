"""What the tiny base model reads before it meets the canonical sites: look-ups first, then pages of other sites.

Look-ups are short documents of random ids and names, asked both ways: the one skill without which nothing else forms.
Then come sites of other seeds: episodes of the scripted experts, single clicks, page changes, and verdicts, each in
the very form in which the policy, the world model and the judge use it later. The canonical seed is never among them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.experts import ExpertPolicy, click
from dynaweb_lite.explore import RandomExplorer
from dynaweb_lite.judge import verdict_rows
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.observation import INTERACTIVE_ROLES
from dynaweb_lite.policy import encode_episode
from dynaweb_lite.prompts import judge_messages, policy_messages, policy_reply, world_model_messages, world_model_reply
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.state_change import describe, diff
from dynaweb_lite.tasks import Task
from dynaweb_lite.tiny_tokenizer import MAX_ID
from dynaweb_lite.trajectory import Trajectory
from dynaweb_lite.worlds import rollout

FIRST_SEED = 1000
"""Sites for pre-training have seeds from here on; the canonical site is seed 0."""
PAGE_WEIGHT = 0.1
"""Loss weight of page tokens beside 1 for replies: pages are worth knowing, replies are what is asked for."""
VERDICT_WEIGHT = 6.0
"""Loss weight of a verdict, a single word that would drown among the tokens of longer replies."""
SEARCH_EVERY = 4
"""One expert episode in four goes through search here: the base knows that way, and does not prefer it."""


@dataclass(frozen=True)
class Document:
    """Tokens [T] and the weight of each in the loss [T], 1 and more on replies. `kind` names the skill."""

    kind: str
    tokens: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class SiteSample:
    """How much is drawn from each pre-training site."""

    episodes: int = 50
    explorations: int = 12
    exploration_steps: int = 10
    clicks: int = 50
    verdicts: int = 120


def make_document(kind: str, tokens: Sequence[int], mask: Sequence[int], rest: float = PAGE_WEIGHT) -> Document:
    """A document with weight 1 where mask [T] is 1, `rest` elsewhere."""
    weights = np.where(np.asarray(mask, bool), 1.0, rest).astype(np.float32)
    return Document(kind, np.asarray(tokens, np.int32), weights)


def single_turn(kind: str, lm: LanguageModel, messages: list[dict], reply: str, weight: float = 1.0) -> Document:
    """A prompt and its reply, whose tokens carry `weight`."""
    prompt, answer = lm.prompt_tokens(messages), lm.reply_tokens(reply)
    document = make_document(kind, prompt + answer, [0] * len(prompt) + [1] * len(answer))
    document.weights[len(prompt) :] = weight
    return document


def lookup_document(
    lm: LanguageModel, names: Sequence[int], rng: random.Random, pairs: int, length: int = 96
) -> Document:
    """Ids and names in the form of a page, then questions for the id of a name and for the name of an id."""
    encode = lm.tokenizer.convert_tokens_to_ids
    opener, quote, end, ask = encode(" link '"), encode(" '"), encode("'\n"), encode("'.\nclick ")
    first = rng.randint(1, MAX_ID - pairs)
    entries = [(encode(f"[{first + i}]"), [rng.choice(names) for _ in range(rng.randint(1, 3))]) for i in range(pairs)]
    tokens, mask = [], []
    for number, name in entries:
        tokens += [number, opener, *name, end]
    mask += [0] * len(tokens)
    while len(tokens) < length:
        number, name = rng.choice(entries)
        if rng.random() < 0.6:
            tokens += [quote, *name, ask, number]
            mask += [0] * (len(name) + 2) + [1]
        else:
            tokens += [number, opener, *name, end]
            mask += [0, 0] + [1] * len(name) + [0]
    return make_document("look-up", tokens[:length], mask[:length], rest=0.0)


def repeat_document(names: Sequence[int], rng: random.Random, length: int = 96) -> Document:
    """A run of random tokens, again and again: what came after it before comes after it again."""
    run = [rng.choice(names) for _ in range(rng.randint(8, 40))]
    tokens = (run * (length // len(run) + 1))[:length]
    return make_document("repeat", tokens, [0] * len(run) + [1] * (length - len(run)), rest=0.0)


def lookup_stream(lm: LanguageModel, seed: int = 0) -> Iterator[tuple[int, Document]]:
    """Endless curriculum: yields (documents so far, document); pairs grow from 2 to 12 over the first 12,000."""
    rng = random.Random(seed)
    added = lm.tokenizer.get_added_vocab()
    names = [i for token, i in lm.tokenizer.get_vocab().items() if token not in added and len(token) > 2]
    number = 0
    while True:
        pairs = rng.randint(2, min(12, 2 + number // 1200))
        repeated = rng.random() < 0.25
        yield number, repeat_document(names, rng) if repeated else lookup_document(lm, names, rng, pairs)
        number += 1


def site_documents(lm: LanguageModel, seed: int, sample: SiteSample) -> list[Document]:
    """Documents of all kinds from the sites of one seed. Raises ValueError for the canonical seed."""
    if seed == 0:
        raise ValueError("seed 0 is the canonical site: the base model must not see it")
    rng = random.Random(seed)
    tasks = generate_tasks(seed)
    web = DirectWeb(SiteServer(seed))
    chosen = rng.sample(tasks, sample.episodes)
    episodes = rollout(ExpertPolicy(tasks, SEARCH_EVERY), web, chosen, max_steps=8, source="expert")
    starts = [rng.choice(tasks) for _ in range(sample.explorations)]
    walks = rollout(RandomExplorer(seed), web, starts, sample.exploration_steps, source="exploration")
    return [
        *_episode_documents(lm, episodes),
        *_change_documents(lm, episodes, walks),
        *_click_documents(lm, episodes + walks, rng, sample.clicks),
        *_verdict_documents(lm, chosen, episodes, rng, sample.verdicts),
    ]


def _episode_documents(lm: LanguageModel, episodes: list[Trajectory]) -> list[Document]:
    documents = []
    for episode in episodes:
        prompt, completion, mask = encode_episode(lm, episode)
        documents.append(make_document("episode", prompt + completion, [0] * len(prompt) + mask))
    return documents


def _change_documents(lm: LanguageModel, episodes: list[Trajectory], walks: list[Trajectory]) -> list[Document]:
    documents, seen = [], set()
    for t in [t for e in walks + episodes[: len(episodes) // 4] for t in e.transitions()]:
        if (key := (t.observation.text, t.action)) in seen:
            continue
        seen.add(key)
        reply = world_model_reply(
            describe(t.observation, t.action, t.next_observation), diff(t.observation, t.next_observation)
        )
        documents.append(single_turn("change", lm, world_model_messages(t.observation, t.action), reply))
    return documents


def _click_documents(lm: LanguageModel, episodes: list[Trajectory], rng: random.Random, count: int) -> list[Document]:
    pages = [o for e in episodes for o in e.observations]
    documents = []
    for page in rng.choices(pages, k=count):
        element = rng.choice([e for e in page.elements if e.role in INTERACTIVE_ROLES])
        decision = click(element)
        goal = f"Click '{element.name}'"
        messages = policy_messages(goal, [], replace(page, last_action_error=""))
        documents.append(single_turn("click", lm, messages, policy_reply(decision.thought, decision.action)))
    return documents


def _verdict_documents(
    lm: LanguageModel, tasks: list[Task], episodes: list[Trajectory], rng: random.Random, count: int
) -> list[Document]:
    rows = verdict_rows(tasks, episodes, rng)
    rows = rng.sample(rows, min(count, len(rows)))
    return [
        single_turn(
            "verdict", lm, judge_messages(r.goal, r.observation, r.answer), "yes" if r.success else "no", VERDICT_WEIGHT
        )
        for r in rows
    ]
