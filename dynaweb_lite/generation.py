"""Batched decoding: what `LanguageModel.generate` runs on.

Each distinct prompt is read once, in chunks that keep to token limits; its keys and values are then copied to as many
rows as replies are wanted, rows that have ended leave, and the cache keeps room ahead so that no step copies the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

Prompt = tuple[int, ...]

MAX_PREFILL_TOKENS = 32_768
"""Prompt tokens, padding included, that are read in one forward pass."""
MAX_CACHE_TOKENS = 65_536
"""Tokens of prompts and replies, over all rows, whose keys and values are held at once."""
KEEP_ROWS_SHARE = 0.75
"""Finished rows leave the batch once fewer than this share still run: leaving costs one copy of the cache."""


@dataclass
class Drawn:
    """Tokens of one reply, and the logarithm of each one's probability."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


def chunks(copies: Mapping[Prompt, int], max_new_tokens: int) -> Iterator[dict[Prompt, int]]:
    """Prompts and how many replies each wants, long prompts first, in chunks that keep to the two token limits.

    The replies of one prompt stay together, even where they alone exceed a limit. Raises ValueError if one is empty.
    """
    chunk: dict[Prompt, int] = {}
    width = 0
    for prompt in sorted(copies, key=len, reverse=True):
        if not prompt:
            raise ValueError("a prompt is empty; a model needs at least one token to go on from")
        read_tokens = (len(chunk) + 1) * width
        held_tokens = (sum(chunk.values()) + copies[prompt]) * (width + max_new_tokens)
        if chunk and (read_tokens > MAX_PREFILL_TOKENS or held_tokens > MAX_CACHE_TOKENS):
            yield chunk
            chunk = {}
        width = len(prompt) if not chunk else width
        chunk[prompt] = copies[prompt]
    if chunk:
        yield chunk


def decode(
    model: torch.nn.Module,
    chunk: Mapping[Prompt, int],
    pad_token: int,
    stop_tokens: Iterable[int],
    max_new_tokens: int,
    sampler: Sampler,
) -> list[tuple[Prompt, Drawn]]:
    """Replies [R] to a chunk of prompts [P], each as often as the chunk says, in its order."""
    prompts, cache = list(chunk), roomy_cache(model)
    logits, mask, positions = read_prompts(model, prompts, pad_token, cache)
    owners = [p for p, count in enumerate(chunk.values()) for _ in range(count)]
    drawn = [(prompts[p], Drawn()) for p in owners]
    spread = torch.tensor(owners, device=logits.device)
    if len(owners) > len(prompts):
        cache.batch_select_indices(spread)
    logits, mask, positions = logits[spread], mask[spread], positions[spread]
    stops = torch.tensor(sorted(stop_tokens), device=logits.device)
    rows = torch.arange(len(owners), device=logits.device)  # which reply each row of the batch writes
    running = torch.ones_like(rows, dtype=torch.bool)
    for step in range(max_new_tokens):
        new, logprobs = sampler(logits)
        for row, token, logprob in zip(
            rows[running].tolist(), new[running].tolist(), logprobs[running].tolist(), strict=True
        ):
            drawn[row][1].tokens.append(token)
            drawn[row][1].logprobs.append(logprob)
        running &= ~torch.isin(new, stops)
        if step == max_new_tokens - 1 or not running.any():
            break
        if running.sum() < KEEP_ROWS_SHARE * len(rows):
            kept = running.nonzero()[:, 0]
            cache.batch_select_indices(kept)
            rows, new, mask, positions, running = (t[kept] for t in (rows, new, mask, positions, running))
        mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
        positions = positions + 1
        logits = forward(model, new[:, None], mask, positions[:, None], cache)
    return drawn


def read_prompts(
    model: torch.nn.Module, prompts: Sequence[Prompt], pad_token: int, cache: Cache | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits after each prompt [P, V], attention mask [P, longest], position of each last token [P]; left padding."""
    width = max(len(p) for p in prompts)
    ids = torch.tensor([[pad_token] * (width - len(p)) + list(p) for p in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=model.device)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return forward(model, ids, mask, positions, cache), mask, positions[:, -1]


def forward(
    model: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: Cache | None
) -> torch.Tensor:
    """Logits of the last position [B, V], float32."""
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=cache is not None,
        logits_to_keep=1,
    )
    return output.logits[:, -1].float()


@dataclass(frozen=True)
class Sampler:
    """Draws tokens: the likeliest at temperature 0, else from the top-p part of softmax(logits / temperature)."""

    temperature: float
    top_p: float
    generator: torch.Generator | None

    def __call__(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens [B] drawn from logits [B, V], and their log-probabilities [B] before top-p."""
        logprobs = torch.log_softmax(logits / (self.temperature or 1.0), dim=-1)
        if self.temperature == 0:
            tokens = logits.argmax(-1, keepdim=True)
        else:
            tokens = torch.multinomial(self._nucleus(logprobs.exp()), 1, generator=self.generator)
        return tokens[:, 0], logprobs.gather(1, tokens)[:, 0]

    def _nucleus(self, probs: torch.Tensor) -> torch.Tensor:
        """Probabilities with the tail beyond top-p set to 0 (Holtzman et al. 2020); not normalised anew."""
        if self.top_p >= 1:
            return probs
        ordered, order = probs.sort(descending=True)
        ordered[ordered.cumsum(-1) - ordered >= self.top_p] = 0
        return torch.zeros_like(probs).scatter(1, order, ordered)


class RoomyLayer(DynamicLayer):
    """A layer of the key-value cache that keeps room for tokens to come, so that a step does not copy the past."""

    room_tokens = 64
    _buffers: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        """Append keys and values [B, heads, new tokens, width]; returns all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        used = self.get_seq_length()
        total = used + key_states.shape[-2]
        if self._buffers is None or total > self._buffers[0].shape[-2]:
            self._buffers = tuple(
                self._grown(x, past, used, total) for x, past in self._pairs(key_states, value_states)
            )
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, used:total] = new
        self.keys, self.values = (buffer[:, :, :total] for buffer in self._buffers)
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        super().batch_select_indices(indices)
        self._buffers = None

    def _pairs(self, key_states: torch.Tensor, value_states: torch.Tensor):
        return zip((key_states, value_states), (self.keys, self.values), strict=True)

    def _grown(self, new: torch.Tensor, past: torch.Tensor, used: int, total: int) -> torch.Tensor:
        batch, heads, _, width = new.shape
        buffer = new.new_empty(batch, heads, total + self.room_tokens, width)
        if used:
            buffer[:, :, :used] = past
        return buffer


def roomy_cache(model: torch.nn.Module) -> Cache:
    """A cache for this architecture; roomy where every layer is plain full attention."""
    cache = DynamicCache(config=model.config)
    if cache.layers and all(type(layer) is DynamicLayer for layer in cache.layers):
        return Cache(layers=[RoomyLayer() for _ in cache.layers])
    return cache
