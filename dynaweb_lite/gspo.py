"""Group Sequence Policy Optimisation on TRL's GRPOTrainer (GSPO: Zheng et al., 2025, arXiv 2507.18071).

With A the group-relative advantage of an episode, and s the length-normalised ratio of the whole episode's own tokens,

    s = exp( mean over own tokens of log pi / pi_old )        A = (r - mean r) / (std r + 1e-4)
    loss = - mean over episodes of min( s A, clip(s, 1 - epsilon, 1 + epsilon_high) A )

Page tokens are read but carry no loss.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from peft import PeftModel
from transformers import PrinterCallback
from trl import GRPOTrainer

from dynaweb_lite.metrics import write_whole
from dynaweb_lite.sft import AdapterCheckpoints

if TYPE_CHECKING:
    from dynaweb_lite.rl import GSPORun


class TrainingDiverged(RuntimeError):
    """The loss or its gradient is not a number; the adapter from before that step was kept."""


def token_logprobs(
    model: torch.nn.Module,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    scored: torch.Tensor,
    temperature: float = 1.0,
    chunk_rows: int = 16,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies [B, T] of the last T tokens, in plain PyTorch.

    input_ids, attention_mask: [B, P+T]; scored: [B, T], where a value is wanted, zero elsewhere. The output layer
    runs on scored positions only, and rows of like length go together without their common padding. Models whose
    output is rescaled after the output layer (Gemma 2, Granite) are not covered; TRL's fused kernel covers them.
    """
    base = model.get_base_model() if isinstance(model, PeftModel) else model
    first = input_ids.size(1) - scored.size(1)
    logps = torch.zeros(scored.shape, device=input_ids.device)
    entropies = torch.zeros_like(logps)
    order = attention_mask.sum(1).argsort()
    for rows in order.split(chunk_rows):
        used = attention_mask[rows].any(0).nonzero().squeeze(1)
        left, right = int(used[0]), int(used[-1]) + 1
        ids, mask = input_ids[rows, left:right], attention_mask[rows, left:right]
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        output = base.base_model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False)
        row, column = scored[rows].bool().nonzero(as_tuple=True)
        logits = (
            base.get_output_embeddings()(output.last_hidden_state[row, column + first - left - 1]).float() / temperature
        )
        log_probs = logits.log_softmax(-1)
        targets = input_ids[rows[row], column + first]
        place = (rows[row], column)
        logps = logps.index_put(place, log_probs.gather(1, targets[:, None]).squeeze(1))
        with torch.no_grad():
            entropies = entropies.index_put(place, -(log_probs.exp() * log_probs).sum(-1))
    return logps, entropies


class GSPOTrainer(AdapterCheckpoints, GRPOTrainer):
    """TRL's trainer, fed by our rollouts, with three changes.

    It works without Triton (TRL 1.15 scores tokens with a Triton kernel only), passes over episodes whose advantage
    is zero, since they carry no gradient, and stops at a loss that is not a number before it reaches the weights.
    """

    def __init__(self, *args, run: GSPORun, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.run = run
        self.ratios: list[float] = []
        self._scored: torch.Tensor | None = None
        self._logps: torch.Tensor | None = None
        self.remove_callback(PrinterCallback)

    def _get_per_token_logps_and_entropies(
        self, model, input_ids, attention_mask, logits_to_keep, batch_size=None, **options
    ):
        scored = attention_mask[:, -logits_to_keep:] if self._scored is None else self._scored
        unwrapped = self.accelerator.unwrap_model(model)
        with self.accelerator.autocast():
            logps, entropies = token_logprobs(unwrapped, input_ids, attention_mask, scored, self.temperature)
        self._logps = logps.detach()
        return logps, entropies, None

    def _compute_loss(self, model, inputs):
        advantages = inputs["advantages"]
        rows = advantages != 0
        if not rows.any():
            rows[0] = True  # all groups are equal: one row keeps the graph, its gradient is zero
        used = {k: v[rows] if v.dim() and v.size(0) == len(rows) else v for k, v in inputs.items()}
        self._scored = used["completion_mask"] * used["tool_mask"]
        try:
            loss = super()._compute_loss(model, used) * (rows.sum() / len(rows))
        finally:
            mask, self._scored = self._scored, None
        drift = (self._logps - used.get("old_per_token_logps", self._logps)) * mask
        self.ratios += (drift.sum(1) / mask.sum(1).clamp(min=1)).exp().tolist()
        return loss

    def training_step(self, model, inputs, num_items_in_batch):
        loss = super().training_step(model, inputs, num_items_in_batch)
        self._stop_unless_finite(loss, "loss")
        return loss

    def _clip_grad_norm(self, model):
        norm = super()._clip_grad_norm(model)
        if self.accelerator.scaler is None:  # with fp16 a scaler skips steps whose gradient overflowed
            self._stop_unless_finite(norm, "gradient norm")
        return norm

    def _stop_unless_finite(self, value: torch.Tensor | float, name: str) -> None:
        if not torch.isfinite(torch.as_tensor(value)).all():
            raise TrainingDiverged(
                f"{name} is {float(value)} after update {self.state.global_step}; the adapter from before is in "
                f"{self.run.output_dir / 'last'}. Lower learning_rate (now {self.run.settings.learning_rate}) or raise "
                "warmup_updates, and start in another folder."
            )

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log(logs, start_time)
        if "grad_norm" in logs:  # the closing summary of a run has none
            self.run.finish_round(self, logs)

    def create_model_card(self, *args, **kwargs) -> None:
        """None: the run's own provenance says what was trained."""

    def _save_checkpoint(self, model, trial) -> None:
        super()._save_checkpoint(model, trial)
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        write_whole(folder / "goals.json", json.dumps(self.run.state()))
