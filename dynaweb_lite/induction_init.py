"""Initial weights that can already copy: what decides whether a tiny model learns to look things up.

A small Llama trained on pages sits for millions of tokens on a plateau where it writes likely links rather than the
one that the goal names. Attention heads that copy form late and by chance. We write them in at the start, as ordinary
weights that training may change:

    layer 0       head h attends h + 1 tokens back, by the phases of the rotary position code alone, and copies what
                  stood there into a subspace of its own ("shifted copies")
    later layers  one induction head: finds where the token at hand stood before, and copies what followed it
                  two look-back heads: find where the token just written stands in the page, and copy what stood two or
                  three tokens before it, which is where an element's id stands before its name
                  one head that attends to equal content

The construction follows the induction heads of Elhage et al. (2021) and Olsson et al. (2022), set by hand for a Llama
of tied embeddings. d: hidden size, D: head size, V: vocabulary.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

EMBEDDING_STD = 0.1
CONSTANT = 0.3
"""Channel 0 of every embedding: a constant that position heads read, so that they do not depend on the token."""
SHARPNESS = 8.8
"""Weight of each rotary pair in a position head's score; its neighbours then score about six nats less."""
POSITION_PAIRS = 6
CONTENT_SCALE = 2.0
VALUE_SCALE, OUTPUT_SCALE = 0.7, 0.25


def write_induction_heads(model: LlamaForCausalLM, seed: int = 0) -> LlamaForCausalLM:
    """Fill a fresh Llama's weights, in place.

    Raises ValueError unless it has a multiple of 4 heads and tied embeddings.
    """
    config = model.config
    heads, size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    if heads % 4 or not config.tie_word_embeddings:
        raise ValueError("induction heads need a multiple of 4 heads and tied embeddings")
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        _small_noise(model, draw)
        _embeddings(model, draw)
        reads = [_projection(size, config.hidden_size, draw) for _ in range(heads)]
        basis = torch.linalg.qr(torch.randn(config.hidden_size, config.hidden_size, generator=draw))[0]
        writes = [basis[:, h * size : (h + 1) * size].T for h in range(heads)]
        frequencies = _rotary_frequencies(config, size)
        _position_heads(model.model.layers[0].self_attn, reads, writes, frequencies)
        for depth, layer in enumerate(model.model.layers[1:], 1):
            _copying_heads(layer.self_attn, depth, reads, writes, frequencies, draw)
    return model


def _small_noise(model: LlamaForCausalLM, draw: torch.Generator) -> None:
    for weight in model.model.layers.parameters():
        if weight.dim() > 1:
            weight.copy_(torch.randn(weight.shape, generator=draw) * 0.02)


def _embeddings(model: LlamaForCausalLM, draw: torch.Generator) -> None:
    weight = model.model.embed_tokens.weight
    weight.copy_(torch.randn(weight.shape, generator=draw) * EMBEDDING_STD)
    weight[:, 0] = CONSTANT


def _projection(size: int, width: int, draw: torch.Generator) -> Tensor:
    """A random reading of content [D, d] that is blind to the constant channel."""
    matrix = torch.randn(size, width, generator=draw) / math.sqrt(width)
    matrix[:, 0] = 0
    return matrix


def _rotary_frequencies(config, size: int) -> Tensor:
    """Radians a token of each rotary pair [D / 2]; pair i is made of channels i and i + D / 2."""
    theta = config.rope_parameters["rope_theta"]
    return theta ** (-torch.arange(0, size, 2) / size)


def _position_heads(attention, reads: list[Tensor], writes: list[Tensor], frequencies: Tensor) -> None:
    """Layer 0: head h looks h + 1 tokens back. A key turned ahead by that angle meets the query exactly there."""
    size, half = len(reads[0]), len(frequencies)
    normalised = CONSTANT / math.sqrt(EMBEDDING_STD**2 + CONSTANT**2 / reads[0].shape[1])
    amplitude = math.sqrt(SHARPNESS * math.sqrt(size)) / normalised
    for head, (read, write) in enumerate(zip(reads, writes, strict=True)):
        rows = slice(head * size, (head + 1) * size)
        query, key = torch.zeros(size), torch.zeros(size)
        angles = frequencies[:POSITION_PAIRS] * (head + 1)
        query[:POSITION_PAIRS] = 1.0
        key[:POSITION_PAIRS], key[half : half + POSITION_PAIRS] = torch.cos(angles), torch.sin(angles)
        attention.q_proj.weight[rows, 0] = query * amplitude
        attention.k_proj.weight[rows, 0] = key * amplitude
        attention.v_proj.weight[rows] = read * VALUE_SCALE
        attention.o_proj.weight[:, rows] = write.T * OUTPUT_SCALE


def _copying_heads(
    attention, depth: int, reads: list[Tensor], writes: list[Tensor], frequencies: Tensor, draw: torch.Generator
) -> None:
    """Layers 1 and up: in each four heads one for induction, two that look back, one for equal content.

    Content is compared mostly in slowly turning rotary channels, so that distance hardly matters.
    """
    size, width = reads[0].shape
    slow = torch.where(frequencies > 0.1, 0.15, 1.0).repeat(2)[:, None]
    for head in range(len(reads)):
        rows = slice(head * size, (head + 1) * size)
        copy = _projection(size, width, draw)
        value, output = copy, copy
        if head % 4 == 0:  # the token at hand stood just before j: copy j
            query, key, scale = reads[0], writes[0], CONTENT_SCALE
        elif head % 4 in (1, 2):  # the token 1 or 2 before the one at hand is j: copy what stood 3 or 2 before j
            back, ahead = depth % 2, 2 if head % 4 == 1 else 1
            query, key, scale = writes[back], reads[back], CONTENT_SCALE
            value, output = writes[ahead], reads[ahead]
        else:
            query = key = _projection(size, width, draw)
            scale = 1.3
        attention.q_proj.weight[rows] = scale * slow * query
        attention.k_proj.weight[rows] = scale * slow * key
        attention.v_proj.weight[rows] = value * VALUE_SCALE
        attention.o_proj.weight[:, rows] = output.T * OUTPUT_SCALE
