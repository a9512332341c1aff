"""Build the tiny base model: tokenizer, initial weights, look-up curriculum, then pages of other sites.

python -m dynaweb_lite build-base          about half an hour on two cores; writes assets/tiny-base/
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from tqdm.auto import tqdm
from transformers import LlamaConfig, LlamaForCausalLM

from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.experts import ExpertPolicy
from dynaweb_lite.induction_init import write_induction_heads
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.pretraining import FIRST_SEED, Document, SiteSample, lookup_stream, site_documents
from dynaweb_lite.prompts import policy_messages, policy_reply
from dynaweb_lite.sites import SiteServer, words
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.state_change import describe
from dynaweb_lite.tiny_tokenizer import build_tokenizer
from dynaweb_lite.worlds import rollout


@dataclass(frozen=True)
class BaseSettings:
    """Size and schooling of the tiny base model."""

    hidden_size: int = 128
    layers: int = 4
    heads: int = 4
    feed_forward: int = 320
    lookup_tokens: int = 1_700_000  # look-up accuracy 0.96
    sites: int = 160  # pre-training sites, each a shop and a forum of its own seed
    epochs: int = 1  # passes over their documents
    batch_tokens: int = 2816  # of one forward pass; documents in it are of similar length
    passes: int = 3  # forward passes an update, of different lengths and so of different kinds
    learning_rate: float = 3e-3
    warmup_updates: int = 40
    seed: int = 0


def new_model(vocabulary: int, settings: BaseSettings) -> LlamaForCausalLM:
    """A Llama of this size with induction heads written in."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=settings.hidden_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=settings.feed_forward,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=3,
        bos_token_id=None,
    )
    torch.manual_seed(settings.seed)
    return write_induction_heads(LlamaForCausalLM(config), settings.seed)


def vocabulary_texts(seeds: Iterable[int]) -> Iterator[str]:
    """Texts to train the tokenizer on: word pools in both cases, and expert episodes on pre-training sites."""
    pools = [v for v in vars(words).values() if isinstance(v, list)]
    every = [w for pool in pools for w in pool]
    for word in every:
        yield f"'{word} {word}'-{word.lower()}-" * 8
    for number in range(100):
        yield f"{number}." * 8
    for seed in seeds:
        tasks = generate_tasks(seed, "train")
        for episode in rollout(ExpertPolicy(tasks), DirectWeb(SiteServer(seed)), tasks, 8):
            yield episode.goal
            for step in episode.steps:
                yield describe(step.observation, step.action, step.next_observation)
                yield policy_messages(episode.goal, [], step.observation)[1]["content"]
                yield policy_reply(step.thought, step.action)
    yield "'yes''no'" * 8


def batches(documents: list[Document], batch_tokens: int, rng: random.Random) -> Iterator[list[Document]]:
    """Documents in random batches of similar length, each at most `batch_tokens` with padding."""
    order = sorted(documents, key=lambda d: len(d.tokens) + rng.random() * 20)
    groups: list[list[Document]] = [[]]
    for document in order:
        if groups[-1] and (len(groups[-1]) + 1) * len(document.tokens) > batch_tokens:
            groups.append([])
        groups[-1].append(document)
    rng.shuffle(groups)
    yield from groups


def batched(items: Iterator, size: int) -> Iterator[list]:
    """Lists of `size` items, the last one shorter (itertools has it from Python 3.12 on)."""
    while part := list(islice(items, size)):
        yield part


def padded(documents: list[Document]) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and loss weights, both [B, longest], padded on the right with weight 0."""
    width = max(len(d.tokens) for d in documents)
    tokens, weights = np.zeros((len(documents), width), np.int64), np.zeros((len(documents), width), np.float32)
    for row, document in enumerate(documents):
        tokens[row, : len(document.tokens)] = document.tokens
        weights[row, : len(document.tokens)] = document.weights
    return torch.from_numpy(tokens), torch.from_numpy(weights)


def weighted_loss(model: LlamaForCausalLM, documents: list[Document]) -> torch.Tensor:
    """Mean cross-entropy in nats over tokens, weighted."""
    tokens, weights = padded(documents)
    logits = model(input_ids=tokens).logits[:, :-1]
    wanted, weights = tokens[:, 1:], weights[:, 1:]
    kept = weights > 0
    losses = cross_entropy(logits[kept], wanted[kept], reduction="none")
    return (losses * weights[kept]).sum() / weights.sum()


@torch.inference_mode()
def reply_accuracy(model: LlamaForCausalLM, documents: list[Document], batch_tokens: int = 8192) -> dict[str, float]:
    """Share of documents, by kind, in which every token of every reply is the likeliest one."""
    right: dict[str, list[float]] = defaultdict(list)
    model.eval()
    for batch in batches(documents, batch_tokens, random.Random(0)):
        tokens, weights = padded(batch)
        hits = (model(input_ids=tokens).logits[:, :-1].argmax(-1) == tokens[:, 1:]) | (weights[:, 1:] < 1)
        for document, row in zip(batch, hits.all(1).tolist(), strict=True):
            right[document.kind].append(row)
    model.train()
    return {kind: round(float(np.mean(values)), 3) for kind, values in sorted(right.items())}


class Schooling:
    """The optimiser of a phase; its learning rate warms up, then falls as a cosine."""

    def __init__(self, model: LlamaForCausalLM, settings: BaseSettings):
        self.model, self.settings = model, settings
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.05)

    def step(self, parts: list[list[Document]], update: int, progress: float) -> float:
        """One update from a few batches; `progress` in [0, 1] sets the learning rate. Returns the loss in nats."""
        warm = min(1.0, (update + 1) / self.settings.warmup_updates)
        rate = self.settings.learning_rate * warm * (0.05 + 0.95 * 0.5 * (1 + np.cos(np.pi * progress)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total = 0.0
        for documents in parts:
            loss = weighted_loss(self.model, documents) / len(parts)
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total


def teach_lookups(lm: LanguageModel, settings: BaseSettings) -> None:
    """Phase 1: random look-ups and repeats until `lookup_tokens` are read."""
    schooling, stream, batch, read, update = Schooling(lm.model, settings), lookup_stream(lm, settings.seed), [], 0, 0
    bar = tqdm(total=settings.lookup_tokens, unit="tok", unit_scale=True, desc="look-ups")
    held_out = [d for _, d in zip(range(256), (d for n, d in lookup_stream(lm, 99) if n > 12_000), strict=False)]
    while read < settings.lookup_tokens:
        batch.append(next(stream)[1])
        if sum(len(d.tokens) for d in batch) >= settings.batch_tokens * settings.passes:
            loss = schooling.step([batch], update, 0.5 * read / settings.lookup_tokens)
            read += (size := sum(len(d.tokens) for d in batch))
            update, batch = update + 1, []
            bar.update(size)
            bar.set_postfix(loss=f"{loss:.3f}")
            if update % 100 == 0:
                bar.write(f"look-ups: {read:,} tokens, accuracy {token_accuracy(lm.model, held_out):.3f}")
    bar.close()


@torch.inference_mode()
def token_accuracy(model: LlamaForCausalLM, documents: list[Document]) -> float:
    """Share of tokens with full weight that are the likeliest ones."""
    tokens, weights = padded(documents)
    asked = weights[:, 1:] >= 1
    hits = model(input_ids=tokens).logits[:, :-1].argmax(-1) == tokens[:, 1:]
    return hits[asked].float().mean().item()


def teach_sites(
    lm: LanguageModel, documents: list[Document], held_out: list[Document], settings: BaseSettings, log: Path
) -> None:
    """Phase 2: pages of other sites, `epochs` times, in random order."""
    schooling, rng, began, update, read = Schooling(lm.model, settings), random.Random(settings.seed), time.time(), 0, 0
    total = settings.epochs * sum(len(d.tokens) for d in documents)
    bar = tqdm(total=total, unit="tok", unit_scale=True, desc="sites")
    for _ in range(settings.epochs):
        for parts in batched(batches(documents, settings.batch_tokens, rng), settings.passes):
            loss = schooling.step(parts, update, read / total)
            read += (size := sum(len(d.tokens) for part in parts for d in part))
            update += 1
            bar.update(size)
            bar.set_postfix(loss=f"{loss:.3f}")
            if update % 100 == 0 or read >= total:
                row = {"tokens": read, "minutes": round((time.time() - began) / 60, 2), "loss": round(loss, 4)}
                row |= reply_accuracy(lm.model, held_out)
                bar.write(json.dumps(row))
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    bar.close()


def save(lm: LanguageModel, folder: Path) -> None:
    """Model and tokenizer as transformers loads them, weights as safetensors."""
    lm.model.save_pretrained(folder, safe_serialization=True)
    lm.tokenizer.save_pretrained(folder)


def build_base(folder: Path, settings: BaseSettings | None = None) -> LanguageModel:
    """Build the base model into a folder, from nothing. Prints accuracy on sites held out from its schooling.

    What was in the folder is replaced when all is done; an interrupted build leaves it alone and begins anew.
    """
    settings, target = settings or BaseSettings(), folder
    folder = target.with_name(target.name + ".part")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.time()
    tokenizer = build_tokenizer(vocabulary_texts(range(FIRST_SEED, FIRST_SEED + 12)))
    lm = LanguageModel(new_model(len(tokenizer), settings).train(), tokenizer, "tiny-base")
    seeds = range(FIRST_SEED, FIRST_SEED + settings.sites)
    documents = [d for seed in tqdm(seeds, desc="sites to read") for d in site_documents(lm, seed, SiteSample())]
    held_out = [d for seed in (500, 501) for d in site_documents(lm, seed, SiteSample(40, 6, 10, 40, 40))]
    teach_lookups(lm, settings)
    teach_sites(lm, documents, held_out, settings, folder / "training.jsonl")
    save(lm, folder)
    made = {
        **asdict(settings),
        "minutes": round((time.time() - began) / 60, 1),
        "parameters": lm.model.num_parameters(),
    }
    made["site_tokens"] = settings.epochs * sum(len(d.tokens) for d in documents)
    (folder / "made.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(model_card(folder), encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    folder.rename(target)
    return lm


MODEL_CARD = """\
---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
# tiny-base

A Llama of {parameters:,} parameters ({layers} layers, {heads} heads, width {hidden_size}) that reads web pages as
accessibility trees. The policy, the world model and the judge of DynaWeb Lite's `tiny` preset start from it.

- **Made by** `python -m dynaweb_lite build-base` in {minutes:.0f} minutes on two CPU cores, from no other model.
- **Read** {lookup_tokens:,} tokens of random look-ups, then {site_tokens:,} tokens from {sites} generated shops
  and forums: episodes of scripted experts, page changes, single clicks, verdicts. Never the canonical sites (seed 0).
- **On sites held out**, share of replies right to the last token: clicks {click:.2f}, verdicts {verdict:.2f},
  page changes {change:.2f} (most next pages hold facts that nobody can know before seeing them).
- **Use** it for what it was made for: replica pages in this project's format. It knows about a thousand words.
- **Initial weights** hold attention heads that copy (`induction_init.py`); all of them were trained on.
"""


def model_card(folder: Path) -> str:
    """The model card, its numbers read from made.json and from the last line of training.jsonl."""
    made = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    last = json.loads((folder / "training.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    return MODEL_CARD.format(**{**last, **made})
