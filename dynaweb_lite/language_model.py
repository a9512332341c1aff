"""A chat language model: load it, turn messages into tokens, generate in batches.

Dreams live on `generate`: many short replies to prompts of which many are equal. It reads each distinct prompt once,
shares that work between equal prompts, and drops rows that have finished. Plain transformers underneath; LoRA adapters
(peft) can share one base model: `lm.share(folder, "world")`.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from dynaweb_lite.generation import Sampler, chunks, decode, read_prompts
from dynaweb_lite.prompts import Message


class ModelError(ValueError):
    """A model or adapter cannot be loaded or used; the message says what to do."""


@dataclass(frozen=True)
class Generated:
    """One reply. `tokens` [T] end with the end-of-turn token where it was produced; `text` leaves that token out.

    `logprobs` [T] are natural logarithms of each token's probability under softmax(logits / temperature), before
    top-p cuts the distribution; at temperature 0 under softmax(logits).
    """

    tokens: tuple[int, ...]
    text: str
    logprobs: tuple[float, ...]


class LanguageModel:
    """A causal language model with its tokenizer and chat template. `adapter` names the LoRA adapter it speaks with."""

    def __init__(
        self,
        model: PreTrainedModel | PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str = "",
        adapter: str | None = None,
    ) -> None:
        if tokenizer.chat_template is None:
            raise ModelError(f"the tokenizer of {name or 'this model'} has no chat template; take an instruct model")
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        self.model, self.tokenizer, self.name, self.adapter = model, tokenizer, name, adapter

    @classmethod
    def load(
        cls, spec: str | Path, adapter: str | Path | None = None, device: str = "auto", dtype: str = "auto"
    ) -> LanguageModel:
        """Load a folder or a Hugging Face id, and a LoRA adapter on top where one is given.

        dtype "auto": bfloat16 on GPUs that compute in it, float16 on older ones, float32 on a CPU.
        Raises ModelError when a folder is missing or is no model.
        """
        device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        torch_dtype = best_dtype(device) if dtype == "auto" else getattr(torch, dtype)
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(spec))
            model = AutoModelForCausalLM.from_pretrained(str(spec), dtype=torch_dtype).to(device).eval()
        except (OSError, ValueError) as error:
            raise ModelError(_load_advice(spec)) from error
        lm = cls(model, tokenizer, Path(spec).name if Path(spec).is_dir() else str(spec))
        return lm.share(adapter, "default") if adapter else lm

    @property
    def device(self) -> torch.device:
        return self.model.device

    def share(self, folder: str | Path, name: str) -> LanguageModel:
        """A second language model on the same weights, speaking with the adapter in `folder`; this one is unchanged.

        Raises ModelError when the folder holds no adapter.
        """
        if not (Path(folder) / "adapter_config.json").exists():
            raise ModelError(f"{folder} holds no adapter (adapter_config.json is missing); train one first")
        if isinstance(self.model, PeftModel):
            self.model.load_adapter(str(folder), name)
        else:
            self.model = PeftModel.from_pretrained(self.model, str(folder), adapter_name=name)
        return LanguageModel(self.model, self.tokenizer, f"{self.name}+{name}", name)

    def merged(self) -> LanguageModel:
        """A copy with the adapter folded into the weights: the same replies, in about 40 % less time on a CPU."""
        model = copy.deepcopy(self.model)
        if isinstance(model, PeftModel):
            model = model.merge_and_unload(adapter_names=[self.adapter]) if self.adapter else model.unload()
        return LanguageModel(model, self.tokenizer, self.name)

    @contextlib.contextmanager
    def speaking(self) -> Iterator[PreTrainedModel | PeftModel]:
        """The model in evaluation mode with this language model's adapter switched on; as it was, afterwards."""
        training = self.model.training
        with contextlib.ExitStack() as stack:
            if isinstance(self.model, PeftModel):
                stack.enter_context(_only_adapter(self.model, self.adapter))
            self.model.eval()
            try:
                yield self.model
            finally:
                self.model.train(training)

    # Tokens

    def prompt_tokens(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of a chat up to where the reply begins."""
        return self._encode(self._render(messages, add_generation_prompt=True))

    def reply_tokens(self, reply: str) -> list[int]:
        """Tokens of a reply as the model should generate it: its text, then the end-of-turn token."""
        return [*self._encode(reply), self.end_of_turn]

    def turn_tokens(self, message: Message) -> list[int]:
        """Tokens that follow a reply's end-of-turn token when one more user message comes, up to the next reply."""
        before = [{"role": "user", "content": "."}, {"role": "assistant", "content": _MARK}]
        rendered = self._render([*before, message], add_generation_prompt=True)
        return self._encode(rendered.partition(_MARK)[2])[1:]

    @cached_property
    def end_of_turn(self) -> int:
        """Id of the token that the chat template puts after a reply."""
        before = [{"role": "user", "content": "."}, {"role": "assistant", "content": _MARK}]
        rendered = self._render([*before, {"role": "user", "content": "."}], add_generation_prompt=False)
        return self._encode(rendered.partition(_MARK)[2])[0]

    @cached_property
    def stop_tokens(self) -> frozenset[int]:
        """Ids that end a reply: the template's, the tokenizer's and those of the model's generation settings."""
        configured = getattr(self.model.generation_config, "eos_token_id", None)
        listed = configured if isinstance(configured, list) else [configured]
        return frozenset(i for i in [self.end_of_turn, self.tokenizer.eos_token_id, *listed] if i is not None)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a reply's tokens without a final stop token; other special tokens stay visible."""
        kept = tokens[:-1] if tokens and tokens[-1] in self.stop_tokens else tokens
        return self.tokenizer.decode(list(kept), skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def _render(self, messages: Sequence[Message], add_generation_prompt: bool) -> str:
        return self.tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=add_generation_prompt
        )

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    # Generation

    @torch.inference_mode()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_new_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        generator: torch.Generator | None = None,
    ) -> list[Generated]:
        """A reply to each prompt [B], in their order. Temperature 0 takes the likeliest token.

        Equal prompts are read once; at temperature 0 they are also answered once. `generator` makes sampling
        repeatable and must live on the model's device.
        """
        rows: dict[tuple[int, ...], list[int]] = {}
        for i, prompt in enumerate(prompts):
            rows.setdefault(tuple(prompt), []).append(i)
        replies: list[Generated | None] = [None] * len(prompts)
        sampler = Sampler(temperature, top_p, generator)
        with self.speaking() as model:
            for chunk in chunks({p: 1 if temperature == 0 else len(at) for p, at in rows.items()}, max_new_tokens):
                drawn = decode(model, chunk, self.tokenizer.pad_token_id, self.stop_tokens, max_new_tokens, sampler)
                for prompt, made in drawn:
                    reply = Generated(tuple(made.tokens), self.decode(made.tokens), tuple(made.logprobs))
                    for i in rows[prompt] if temperature == 0 else [rows[prompt].pop(0)]:
                        replies[i] = reply
        return replies

    @torch.inference_mode()
    def next_token_logits(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logits of the token after each prompt [B, V], in float32 on the CPU."""
        found: dict[tuple[int, ...], torch.Tensor] = {}
        with self.speaking() as model:
            for chunk in chunks({tuple(p): 1 for p in prompts}, max_new_tokens=1):
                logits, *_ = read_prompts(model, list(chunk), self.tokenizer.pad_token_id, cache=None)
                found.update(zip(chunk, logits.cpu(), strict=True))
        return torch.stack([found[tuple(p)] for p in prompts])


_MARK = "REPLYMARK"


def best_dtype(device: str) -> torch.dtype:
    """bfloat16 where the GPU computes in it (not merely emulates it, as a T4 does), else float16; float32 on a CPU."""
    if not str(device).startswith("cuda"):
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def _load_advice(spec: str | Path) -> str:
    path = Path(spec)
    if path.is_dir():
        if (path / "adapter_config.json").exists():
            return f"{spec} is an adapter; load its base model and give the folder as adapter="
        return f"{spec} is a folder without a model: it needs config.json, model.safetensors and tokenizer.json"
    return f"no model {str(spec)!r}: neither a folder here nor a Hugging Face model that can be reached"


@contextlib.contextmanager
def _only_adapter(model: PeftModel, name: str | None) -> Iterator[None]:
    """Switch one adapter on (None: all off) and, afterwards, what was on before."""
    if name is None:
        with model.disable_adapter():
            yield
        return
    before = model.active_adapter
    if before == name:
        yield
        return
    trainable = [p for p in model.parameters() if p.requires_grad]
    model.set_adapter(name, inference_mode=True)
    try:
        yield
    finally:
        model.set_adapter(before, inference_mode=True)
        for parameter in trainable:
            parameter.requires_grad_(True)
