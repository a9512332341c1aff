"""Supervised fine-tuning with TRL: one path for the world model, the judge and the cloned policy.

Loss falls on reply tokens only, and the tokens are exactly those of generation (`LanguageModel.prompt_tokens`,
`reply_tokens`, `turn_tokens`). A run lives in a folder: a finished one is loaded, an interrupted one goes on.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, PrinterCallback, ProgressCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from dynaweb_lite.language_model import LanguageModel, ModelError, best_dtype
from dynaweb_lite.prompts import Message

EvalFunction = Callable[[LanguageModel], dict[str, float]]
IGNORED = -100
"""The label of a token without loss, as in PyTorch's cross-entropy."""


@dataclass(frozen=True)
class Example:
    """A chat and the reply to learn. `messages` end with a user's."""

    messages: list[Message]
    reply: str


@dataclass(frozen=True)
class TokenExample:
    """Tokens [T], and a mask [T] that is 1 where a token carries loss: a whole episode in one sequence."""

    input_ids: list[int]
    loss_mask: list[int]

    @property
    def labels(self) -> list[int]:
        return [token if kept else IGNORED for token, kept in zip(self.input_ids, self.loss_mask, strict=True)]


@dataclass(frozen=True)
class SFTSettings:
    """How to fine-tune."""

    learning_rate: float = 1e-3  # for LoRA on a model of 1M parameters; about 2e-4 from 0.5B parameters on
    epochs: float = 10.0  # small exact languages need many passes; ignored when max_updates is set
    max_updates: int = 0  # a fixed number of optimiser steps, so that a result does not hang on the clock; 0: epochs
    batch_size: int = 16  # sequences in one forward pass
    accumulation: int = 1  # passes in one update, where memory does not hold the batch
    lora_rank: int = 16  # 0 trains all weights
    lora_alpha: int = 32  # the adapter is scaled by alpha / rank
    lora_dropout: float = 0.0  # transitions are nearly deterministic: nothing to regularise against
    warmup_share: float = 0.05  # of the updates; a cosine to zero follows
    weight_decay: float = 0.0
    max_length: int = 2048  # tokens; longer examples are left out and counted
    gradient_checkpointing: bool = False  # trades a third more time for memory: large models on small GPUs
    eval_every: int = 0  # updates between calls of the eval function; 0: after the last update only
    save_every: int = 200  # updates between checkpoints
    seed: int = 0

    def __post_init__(self) -> None:
        if self.learning_rate <= 0 or self.batch_size < 1 or self.accumulation < 1:
            raise ValueError("learning_rate, batch_size and accumulation must be above zero")
        if self.epochs <= 0 and self.max_updates <= 0:
            raise ValueError("set epochs or max_updates above zero")
        if self.lora_rank < 0 or not 0 <= self.warmup_share < 1:
            raise ValueError("lora_rank must be 0 (all weights) or more, warmup_share in [0, 1)")


def token_example(lm: LanguageModel, example: Example | TokenExample) -> TokenExample:
    """The tokens of a prompt and its reply, loss on the reply and its end-of-turn token."""
    if isinstance(example, TokenExample):
        return example
    prompt, reply = lm.prompt_tokens(example.messages), lm.reply_tokens(example.reply)
    return TokenExample(prompt + reply, [0] * len(prompt) + [1] * len(reply))


def episode_example(lm: LanguageModel, messages: Sequence[Message]) -> TokenExample:
    """A chat of several turns that ends with a reply, as one sequence with loss on every reply.

    The tokens are those that an episode has in generation, turn after turn. Raises ModelError when the chat does not
    end with a reply.
    """
    if not messages or messages[-1]["role"] != "assistant":
        raise ModelError("an episode to learn from must end with a reply (a message of the assistant)")
    first = next(i for i, m in enumerate(messages) if m["role"] == "assistant")
    ids = lm.prompt_tokens(messages[:first])
    mask = [0] * len(ids)
    for message in messages[first:]:
        is_reply = message["role"] == "assistant"
        tokens = lm.reply_tokens(message["content"]) if is_reply else lm.turn_tokens(message)
        ids, mask = ids + tokens, mask + [int(is_reply)] * len(tokens)
    return TokenExample(ids, mask)


def train_sft(
    lm: LanguageModel,
    examples: Sequence[Example | TokenExample],
    output_dir: str | Path,
    settings: SFTSettings | None = None,
    eval_fn: EvalFunction | None = None,
    progress: bool = True,
) -> LanguageModel:
    """Fine-tune a copy of `lm` and return it; `lm` stays as it was. An adapter that `lm` speaks with is trained on.

    `output_dir` gets the adapter (or, at rank 0, the model), metrics.csv (one row an evaluation or ten updates) and
    training.json. A finished folder of the same settings, data and base is loaded instead. An interrupted one goes on.
    Raises ModelError when no example is left to learn from.
    """
    settings, folder = settings or SFTSettings(), Path(output_dir)
    rows = [token_example(lm, e) for e in examples]
    kept = [r for r in rows if len(r.input_ids) <= settings.max_length and any(r.loss_mask)]
    if not kept:
        raise ModelError(f"{len(rows)} examples, none of at most {settings.max_length} tokens; raise max_length")
    identity = {"base": lm.name, "weights": _weights_fingerprint(lm), "settings": asdict(settings)}
    identity["data"] = _fingerprint(repr((r.input_ids, r.loss_mask)) for r in kept)
    record = _read_json(folder / "training.json")
    same = all(record.get(key) == value for key, value in identity.items())
    if same and record.get("finished"):
        return _load_trained(lm, folder, settings)
    if not same:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "training.json", {**identity, "finished": False})
    trained = _trainable(lm, settings)
    started = time.monotonic()
    trainer = _trainer(trained, kept, folder, settings, eval_fn, progress)
    whole = [p.parent for p in (folder / "checkpoints").glob("checkpoint-*/trainer_state.json")]  # written last
    newest = max(whole, key=lambda p: int(p.name.rpartition("-")[2]), default=None)
    trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    _remove_fused_head(trained.model)
    trained.model.eval()
    _save(trained, folder)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    counts = {"examples": len(kept), "left_out": len(rows) - len(kept), "updates": trainer.state.global_step}
    seconds = round(time.monotonic() - started, 1)
    _write_json(folder / "training.json", {**identity, **counts, "seconds": seconds, "finished": True})
    return trained


def _save(lm: LanguageModel, folder: Path) -> None:
    """Adapter or model as safetensors; without peft's empty model card, and naming the base without its path."""
    if isinstance(lm.model, PeftModel):
        lm.model.peft_config[lm.adapter].base_model_name_or_path = lm.name
        lm.model.save_pretrained(str(folder), selected_adapters=[lm.adapter], save_embedding_layers=False)
        (folder / "README.md").unlink(missing_ok=True)
    else:
        lm.model.save_pretrained(str(folder))
        lm.tokenizer.save_pretrained(str(folder))


def _trainable(lm: LanguageModel, settings: SFTSettings) -> LanguageModel:
    """A copy of the model, with a fresh adapter where it has none and one is wanted."""
    model = copy.deepcopy(lm.model)
    _remove_fused_head(model)
    if isinstance(model, PeftModel) and lm.adapter:
        model.set_adapter(lm.adapter)
        return LanguageModel(model, lm.tokenizer, lm.name, lm.adapter)
    if isinstance(model, PeftModel):
        model = model.unload()
    if not settings.lora_rank:  # 16-bit weights are too coarse for small updates: keep them in 32, compute in 16
        return LanguageModel(model.float().requires_grad_(True), lm.tokenizer, lm.name)
    torch.manual_seed(settings.seed)
    return LanguageModel(get_peft_model(model, lora_config(settings)), lm.tokenizer, lm.name, "default")


def lora_config(settings: SFTSettings) -> LoraConfig:
    """LoRA on every linear layer of attention and MLP; "all-linear" leaves out the head, which may be tied."""
    return LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def _load_trained(lm: LanguageModel, folder: Path, settings: SFTSettings) -> LanguageModel:
    """The model of a finished folder, on a copy of the base."""
    if (folder / "adapter_config.json").exists():
        base = copy.deepcopy(lm.model)
        base = base.unload() if isinstance(base, PeftModel) else base
        trained = LanguageModel(base, lm.tokenizer, lm.name).share(folder, "default")
        return LanguageModel(trained.model, lm.tokenizer, lm.name, "default")
    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=lm.model.dtype).to(lm.device).eval()
    return LanguageModel(model, lm.tokenizer, lm.name)


def _trainer(
    lm: LanguageModel,
    rows: list[TokenExample],
    folder: Path,
    settings: SFTSettings,
    eval_fn: EvalFunction | None,
    progress: bool,
) -> SFTTrainer:
    on_cpu, dtype = lm.device.type == "cpu", best_dtype(lm.device.type)
    arguments = SFTConfig(
        output_dir=str(folder / "checkpoints"),
        learning_rate=settings.learning_rate,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_updates or -1,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        lr_scheduler_type="cosine",
        warmup_steps=settings.warmup_share,  # a share below 1 is read as a share of the updates
        weight_decay=settings.weight_decay,
        max_length=None,  # cut already
        gradient_checkpointing=settings.gradient_checkpointing,
        train_sampling_strategy="group_by_length",  # on a CPU, padding is paid in full
        logging_steps=10,
        save_steps=settings.save_every,
        save_total_limit=1,
        use_cpu=on_cpu,
        bf16=dtype == torch.bfloat16,
        fp16=dtype == torch.float16,
        seed=settings.seed,
        report_to="none",
        disable_tqdm=not progress,
        dataloader_pin_memory=not on_cpu,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    dataset = Dataset.from_list([{"input_ids": r.input_ids, "labels": r.labels} for r in rows])
    trainer = CompletionTrainer(
        model=lm.model,
        args=arguments,
        train_dataset=dataset,
        processing_class=lm.tokenizer,
        callbacks=[_Record(folder / "metrics.csv", lm, eval_fn, settings.eval_every)],
    )
    trainer.remove_callback(PrinterCallback)
    if progress:
        trainer.remove_callback(ProgressCallback)
        trainer.add_callback(_Bar())
    return trainer


class AdapterCheckpoints:
    """For trainers: a checkpoint of a LoRA holds the adapter alone, and peft asks no hub about the base model."""

    def _save(self, output_dir=None, state_dict=None):
        if not isinstance(self.model, PeftModel):
            return super()._save(output_dir, state_dict)
        return self.model.save_pretrained(output_dir or self.args.output_dir, save_embedding_layers=False)


class CompletionTrainer(AdapterCheckpoints, SFTTrainer):
    """TRL's trainer with a loss in plain PyTorch where there is no CUDA: trl 1.15's fused head needs Triton."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Mean negative log-likelihood of the reply tokens, over all sequences of the update."""
        if self.args.device.type == "cuda":
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        labels = inputs["labels"][:, 1:]
        output = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False)
        kept = labels != IGNORED
        total = torch.nn.functional.cross_entropy(output.logits[:, :-1][kept].float(), labels[kept], reduction="sum")
        loss = total / (kept.sum() if num_items_in_batch is None else num_items_in_batch)
        return (loss, output) if return_outputs else loss


def _remove_fused_head(model: torch.nn.Module) -> None:
    """Give the model its own forward pass back: every trl trainer wraps it once more, and copies would share it."""
    base = model.get_base_model() if isinstance(model, PeftModel) else model
    base.__dict__.pop("forward", None)


class _Bar(ProgressCallback):
    """A progress bar with the loss beside it, instead of a printed line every few updates."""

    def on_log(self, args, state, control, logs=None, **kwargs):
        if self.training_bar is not None and logs and "loss" in logs:
            self.training_bar.set_postfix(loss=f"{float(logs['loss']):.3f}")


class _Record(TrainerCallback):
    """Writes metrics.csv, and calls the eval function when it is due."""

    fields = ("update", "epoch", "seconds", "loss", "learning_rate", "metric", "value")

    def __init__(self, path: Path, lm: LanguageModel, eval_fn: EvalFunction | None, eval_every: int) -> None:
        self.path, self.lm, self.eval_fn, self.eval_every = path, lm, eval_fn, eval_every
        self.started, self.evaluated = time.monotonic(), -1

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            self._write(state, loss=f"{logs['loss']:.5f}", learning_rate=f"{logs['learning_rate']:.3e}")

    def on_step_end(self, args, state, control, **kwargs):
        if self.eval_every and state.global_step % self.eval_every == 0:
            self._evaluate(state)

    def on_train_end(self, args, state, control, **kwargs):
        self._evaluate(state)

    def _evaluate(self, state) -> None:
        if self.eval_fn is None or self.evaluated == state.global_step:
            return
        self.evaluated = state.global_step
        for metric, value in self.eval_fn(self.lm).items():
            self._write(state, metric=metric, value=value)

    def _write(self, state, **row) -> None:
        seconds = round(time.monotonic() - self.started, 1)
        is_new = not self.path.exists()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.fields)
            if is_new:
                writer.writeheader()
            writer.writerow({"update": state.global_step, "epoch": f"{state.epoch:.2f}", "seconds": seconds, **row})


def _fingerprint(parts: Iterable[str]) -> str:
    """A short hash, so that a folder trained on other data or from another base is not taken for this one's."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
    return digest.hexdigest()[:16]


def _weights_fingerprint(lm: LanguageModel) -> str:
    """A short hash of the first 64 numbers of every weight: training moves them all."""
    return _fingerprint(repr((name, p.flatten()[:64].tolist())) for name, p in lm.model.named_parameters())


def _read_json(path: Path) -> dict:
    """A JSON file's object, empty where it is missing or half-written."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return {}


def _write_json(path: Path, row: dict) -> None:
    """Write through a second file, so that a killed run leaves no half-written one."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
