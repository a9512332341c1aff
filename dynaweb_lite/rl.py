"""Reinforcement learning in dreams: GSPO with LoRA through TRL, expert trajectories interleaved.

The world is any worlds.World: an ImaginedWeb makes this DynaWeb, a real one makes it real-environment RL, by the same
code. One round: draw goals, roll out their groups, insert experts (groups.py), one or more optimiser steps (gspo.py).
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import statistics as stats
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model, load_peft_weights, set_peft_model_state_dict
from peft.tuners.lora import LoraLayer
from trl import GRPOConfig, GRPOTrainer

from dynaweb_lite.groups import Experts, GoalStatistics, Group, TaskId, draw_groups, keep_groups, play_groups
from dynaweb_lite.gspo import GSPOTrainer
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.metrics import Row, describe_groups, read_metrics, world_counters, write_metrics, write_whole
from dynaweb_lite.observation import Observation
from dynaweb_lite.policy import EpisodeTokens, LanguagePolicy, encode_episode, episode_tokens
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Trajectory, save_trajectories
from dynaweb_lite.worlds import World

NOTE = "note.json"
"""Beside an adapter: the validation score and the update that it stands for."""


@dataclass(frozen=True)
class RLSettings:
    """What GSPO training depends on. Defaults are the tiny preset's; the paper's values are in the comments."""

    updates: int = 100  # optimiser steps; fixed in advance, because a clock would favour fast arms
    groups_per_update: int = 8  # goals per round of rollouts; paper 4, authors' repository 8
    group_size: int = 8  # episodes per goal (paper); fewer leave more groups without spread
    minibatches: int = 1  # optimiser steps per round; above 1 the ratio leaves 1 and the clip range matters
    num_iterations: int = 1  # passes over a round's episodes
    rows_per_forward: int = 64  # episodes per backward pass: the memory dial; gradients are accumulated over the rest
    max_dream_steps: int = 5  # paper: best at 4-5, since a world model's errors compound
    max_new_tokens: int = 24  # a thought and an action of the tiny model; large models need 200 and more
    real_share: float = 0.5  # share of a group's members that are expert trajectories, where the goal has any (paper)
    replace_mode: str = "each_with_probability"  # the paper's; "fixed_count" is the authors' repository's
    expert_members: int = 2  # with fixed_count: members replaced in a group; repository 1
    expert_goal_probability: float = 0.4  # how often a group's goal is one with experts; the others need practice more
    intermediate_share: float = 0.0  # share of expert goals that start on a later page of an expert trajectory
    oversample: float = 1.5  # goals rolled out per goal used, those with spread first: equal rewards teach nothing
    weight_floor: float = 0.05  # added to a goal's weight q(1-q), so that hopeless and solved goals are still tried
    learning_rate: float = 5e-4  # for a LoRA on 1M parameters; paper 1e-6 for all of 8B
    warmup_updates: int = 3  # Adam's first steps are as large as the learning rate whatever the gradient
    max_grad_norm: float = 1.0
    temperature: float = 1.0  # pi_old is the sampling distribution only at 1; paper samples at 0.7
    top_p: float = 1.0  # as above; paper 0.9
    epsilon: float = 3e-4  # GSPO's clip range, far below PPO's 0.2, since s averages over tokens
    epsilon_high: float = 4e-4
    lora_rank: int = 16  # used only where the model brings no adapter of its own
    lora_alpha: int = 32
    gradient_checkpointing: bool = False  # trades time for memory; for models of billions of parameters
    seed: int = 0
    eval_every: int = 10  # updates between validations, and between audits of dreams
    keep_best: bool = True  # return the adapter that validated best instead of the last one
    save_every: int = 10  # updates between checkpoints; a killed run resumes from the latest
    trajectories_every: int = 10  # updates between saves of a few rollouts for the eye; 0 saves none
    trajectories_saved: int = 8

    def __post_init__(self) -> None:
        """Raises ValueError that says which setting is wrong and what it may be."""
        rows = self.groups_per_update * self.group_size
        per_step = rows // max(1, self.minibatches)
        checks = [
            (self.group_size >= 2, "group_size must be 2 or more: an advantage compares members of a group"),
            (self.groups_per_update >= 1, "groups_per_update must be 1 or more"),
            (self.updates >= 1 and self.updates % self.steps_per_round == 0,
             "updates must be a positive multiple of minibatches * num_iterations"),
            (rows % max(1, self.minibatches) == 0, "minibatches must divide groups_per_update * group_size"),
            (self.rows_per_forward >= 1 and per_step % min(self.rows_per_forward, per_step) == 0,
             f"rows_per_forward must divide the {per_step} episodes of an optimiser step, or exceed them"),
            (all(0 <= share <= 1 for share in (self.real_share, self.expert_goal_probability, self.intermediate_share)),
             "real_share, expert_goal_probability and intermediate_share are shares between 0 and 1"),
            (self.replace_mode in ("each_with_probability", "fixed_count"),
             "replace_mode is each_with_probability or fixed_count"),
            (0 <= self.expert_members < self.group_size, "expert_members must leave a member to the policy"),
            (self.oversample >= 1, "oversample is 1 (off) or more"),
            (self.temperature > 0, "temperature must be above 0: greedy members are all alike"),
            (min(self.max_dream_steps, self.max_new_tokens, self.eval_every, self.save_every) >= 1,
             "max_dream_steps, max_new_tokens, eval_every and save_every must be 1 or more"),
        ]  # fmt: skip
        for holds, message in checks:
            if not holds:
                raise ValueError(f"RLSettings: {message}")

    @property
    def steps_per_round(self) -> int:
        """Optimiser steps made from one round of rollouts."""
        return self.minibatches * self.num_iterations


def config_arguments(settings: RLSettings, output_dir: Path, device: str) -> dict:
    """The arguments of TRL's GRPOConfig; a test holds each against the installed version."""
    rows = settings.groups_per_update * settings.group_size
    per_forward = min(settings.rows_per_forward, rows // settings.minibatches)
    on_gpu = device.startswith("cuda")
    return {
        "output_dir": str(output_dir),
        "max_steps": settings.updates,
        "per_device_train_batch_size": per_forward,
        "gradient_accumulation_steps": rows // settings.minibatches // per_forward,
        "steps_per_generation": rows // per_forward,
        "num_generations": settings.group_size,
        "num_iterations": settings.num_iterations,
        "importance_sampling_level": "sequence",
        "loss_type": "grpo",  # the default, dapo, would weigh episodes by their length
        "scale_rewards": "group",
        "beta": 0.0,  # no KL term, as in the authors' repository
        "epsilon": settings.epsilon,
        "epsilon_high": settings.epsilon_high,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_completion_length": None,  # an episode's length is bounded by max_dream_steps
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": settings.warmup_updates,
        "weight_decay": 0.0,
        "max_grad_norm": settings.max_grad_norm,
        "gradient_checkpointing": settings.gradient_checkpointing,
        "disable_dropout": True,  # dropout would move the ratio away from 1
        "shuffle_dataset": False,
        "ignore_data_skip": True,  # our rows are empty slots; a resumed run has nothing to pass over
        "logging_steps": settings.steps_per_round,
        "save_strategy": "steps",
        "save_steps": -(-settings.save_every // settings.steps_per_round) * settings.steps_per_round,
        "save_total_limit": 2,  # the one before stays readable while the newest is half written
        "seed": settings.seed,
        "use_cpu": not on_gpu,
        "bf16": on_gpu and torch.cuda.is_bf16_supported(),
        "fp16": on_gpu and not torch.cuda.is_bf16_supported(),
        "report_to": "none",
        "disable_tqdm": True,
    }


class GSPORun:
    """One training run: it feeds the trainer with groups, and keeps statistics, metrics and the best adapter."""

    def __init__(
        self,
        lm: LanguageModel,
        tasks: Sequence[Task],
        world: World,
        experts: Experts,
        output_dir: Path,
        settings: RLSettings,
        starts: Mapping[TaskId, Observation] | None,
        evaluate: Callable[[LanguageModel, int], float] | None,
        on_update: Callable[[Row], None] | None,
        audit: Callable[[list[Trajectory]], Row] | None,
    ) -> None:
        self.lm, self.tasks, self.world, self.experts, self.starts = lm, tasks, world, experts, starts
        self.output_dir, self.settings = output_dir, settings
        self.evaluate, self.on_update, self.audit = evaluate, on_update, audit
        self.statistics = GoalStatistics()
        self.rows: list[Row] = []
        self.best: tuple[float, int] | None = None  # score and update
        self._round: Row = {}
        self._episodes: list[Trajectory] = []
        self._expert_tokens: dict[tuple, EpisodeTokens] = {}

    def rollouts(self, prompts: Sequence[str], trainer: GRPOTrainer) -> dict[str, list]:
        """TRL's rollout_func: its prompts are empty slots; we choose goals, play them, and give back N episodes.

        Members of a group stand side by side, as TRL's advantages expect. No log-probabilities are given: TRL takes
        pi_old from the model itself, so that experts' tokens get true ones and their ratio starts at 1.
        """
        started = time.perf_counter()
        s, update = self.settings, trainer.state.global_step
        seed = s.seed * 1_000_003 + update
        count = len(prompts) // s.group_size
        drawn = max(count, round(count * s.oversample))
        groups = draw_groups(random.Random(seed), self.tasks, self.experts, self.statistics, s, drawn)
        policy = LanguagePolicy(self.lm, s.temperature, s.top_p, s.max_new_tokens, seed)
        with folded_adapter(self.lm):
            self._episodes = play_groups(groups, policy, self.world, s, self.starts)
        for group in groups:
            if group.start is None:  # an episode begun half way says little about the whole
                self.statistics.add(group.task.task_id, [t.reward for t in group.rollouts])
        kept = keep_groups(groups, count)
        members = [m for g in kept for m in self.group_tokens(g)]
        self._round = {**describe_groups(groups, kept, self._episodes), **world_counters(self.world)}
        self._round["seconds_rollout"] = time.perf_counter() - started
        return {
            "prompt_ids": [m.prompt_ids for m in members],
            "completion_ids": [m.completion_ids for m in members],
            "env_mask": [m.completion_mask for m in members],
            "logprobs": None,
            "episode_reward": [r for g in kept for r in g.rewards],
        }

    def group_tokens(self, group: Group) -> list[EpisodeTokens]:
        """Token sequences of a group's members [G], in the order of its rewards."""
        return [episode_tokens(t) for t in group.rollouts] + [self._encode_expert(t) for t in group.experts]

    def _encode_expert(self, trajectory: Trajectory) -> EpisodeTokens:
        key = (trajectory.goal, *((s.observation.text, s.thought, s.action) for s in trajectory.steps))
        if key not in self._expert_tokens:
            self._expert_tokens[key] = encode_episode(self.lm, trajectory)
        return self._expert_tokens[key]

    def finish_round(self, trainer: GSPOTrainer, logs: dict[str, float]) -> None:
        """After the optimiser steps of a round: validate where due, write metrics.csv, tell the caller."""
        update, ratios = trainer.state.global_step, trainer.ratios
        seconds = logs.get("step_time", 0.0) * self.settings.steps_per_round - self._round.get("seconds_rollout", 0.0)
        row: Row = {"update": update, **self._round, "seconds_update": max(0.0, seconds)}
        names = {"loss": "loss", "grad_norm": "grad_norm", "learning_rate": "lr", "entropy": "entropy"}
        row.update({ours: logs[theirs] for theirs, ours in names.items() if theirs in logs})
        row["clip_share"] = logs.get("clip_ratio/region_mean", 0.0)
        row["ratio_mean"] = stats.fmean(ratios) if ratios else 1.0
        row["success_estimate"] = self.statistics.mean_success()
        trainer.ratios = []
        if update // self.settings.eval_every > (update - self.settings.steps_per_round) // self.settings.eval_every:
            row.update(self.audit(self._episodes) if self.audit else {})
            row.update(self.validate(update))
        self._save_some(update)
        self._write(row)

    def validate(self, update: int) -> Row:
        """Score the present policy on validation goals and keep its adapter if it is the best so far."""
        if self.evaluate is None:
            return {}
        score = self.evaluate(self.lm, update)
        if self.best is None or score > self.best[0]:
            self.best = (score, update)
            self.save_adapter("best", {"validation": score, "update": update})
        return {"validation": score}

    def _write(self, row: Row) -> None:
        self.rows.append(row)
        write_metrics(self.output_dir / "metrics.csv", self.rows)
        if self.on_update:
            self.on_update(row)

    def _save_some(self, update: int) -> None:
        every = self.settings.trajectories_every
        if every and update % every == 0:
            some = self._episodes[: self.settings.trajectories_saved]
            for episode in some:
                episode.provenance["update"] = update
            save_trajectories(self.output_dir / "trajectories.jsonl", some)

    def save_adapter(self, name: str, note: dict | None = None) -> None:
        """Write the trained adapter, and what is to be known of it, to output_dir/name, replacing what was there."""
        temporary, folder, adapter = self.output_dir / f"{name}.part", self.output_dir / name, self.lm.adapter
        self.lm.model.save_pretrained(temporary, selected_adapters=[adapter], save_embedding_layers=False)
        # peft puts every adapter that is not called "default" into a folder of its own name
        made = temporary if adapter == "default" else temporary / adapter
        write_whole(made / NOTE, json.dumps(note or {}))
        old = self.output_dir / f"{name}.old"
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        made.rename(folder)
        for rest in (old, temporary):
            shutil.rmtree(rest, ignore_errors=True)

    def load_adapter(self, name: str) -> None:
        weights = load_peft_weights(str(self.output_dir / name), device=str(self.lm.device))
        set_peft_model_state_dict(self.lm.model, weights, adapter_name=self.lm.adapter)

    def state(self) -> dict:
        return {"goals": self.statistics.to_json()}

    def _best_on_disk(self) -> tuple[float, int] | None:
        """Score and update of the adapter in best/, which may be newer than the latest checkpoint."""
        folder, old = self.output_dir / "best", self.output_dir / "best.old"
        if old.exists() and not folder.exists():
            old.rename(folder)  # killed between the two renames of save_adapter
        note = json.loads((folder / NOTE).read_text()) if (folder / NOTE).exists() else None
        return (note["validation"], note["update"]) if note else None

    def resume(self, checkpoint: Path) -> int:
        """Take over a checkpoint's statistics and the metrics up to it; returns its update number."""
        state = json.loads((checkpoint / "goals.json").read_text())
        self.statistics.load(state["goals"])
        self.best = self._best_on_disk()
        update = int(checkpoint.name.rpartition("-")[2])
        self.rows = [row for row in read_metrics(self.output_dir / "metrics.csv") if row["update"] <= update]
        return update


def last_checkpoint(output_dir: Path) -> Path | None:
    """The newest checkpoint that was written to its end, or None."""
    whole = [p.parent for p in output_dir.glob("checkpoint-*/goals.json")]
    return max(whole, key=lambda p: int(p.name.rpartition("-")[2]), default=None)


def prepare_lora(lm: LanguageModel, settings: RLSettings) -> None:
    """Make the model's own adapter trainable (training goes on from it), or give it a fresh one."""
    if lm.adapter is None:
        torch.manual_seed(settings.seed)
        config = LoraConfig(
            r=settings.lora_rank,
            lora_alpha=settings.lora_alpha,
            lora_dropout=0.0,
            target_modules="all-linear",  # peft leaves the output layer out, which tied embeddings need
            task_type="CAUSAL_LM",
        )
        if isinstance(lm.model, PeftModel):  # the base is shared with a world model's adapter
            lm.adapter = f"policy{len(lm.model.peft_config)}"
            lm.model.add_adapter(lm.adapter, config)
        else:
            lm.adapter = "default"
            lm.model = get_peft_model(lm.model, config)
    lm.model.set_adapter(lm.adapter)


@contextlib.contextmanager
def folded_adapter(lm: LanguageModel) -> Iterator[None]:
    """Add a lone LoRA adapter into the base weights while a model acts on a CPU: a third less time for the tiny one.

    The base weights are put back from a copy, bit for bit: subtracting the adapter again would let them drift.
    """
    model = lm.model
    if lm.device.type != "cpu" or len(model.peft_config) > 1:
        yield
        return
    weights = [module.base_layer.weight for module in model.modules() if isinstance(module, LoraLayer)]
    copies = [w.detach().clone() for w in weights]
    model.merge_adapter()
    try:
        yield
    finally:
        model.unmerge_adapter()
        for weight, copy in zip(weights, copies, strict=True):
            weight.data.copy_(copy)


def check_inputs(
    tasks: Sequence[Task], experts: Experts, output_dir: Path, settings: RLSettings, starts: Mapping | None
) -> None:
    """Raises ValueError for what would fail late or silently: no tasks, missing starts, another run's folder."""
    if not tasks:
        raise ValueError("train_gspo needs at least one task")
    missing = [t.task_id for t in tasks if starts is not None and t.task_id not in starts]
    if missing:
        raise ValueError(f"no start page for {len(missing)} tasks, among them {missing[0]}")
    if settings.intermediate_share > 0 and starts is None:
        raise ValueError("intermediate_share > 0 needs `starts`: a start page for every task")
    failed = [t.task_id for group in experts.values() for t in group if t.steps and t.reward < 1]
    if failed:
        raise ValueError(f"{len(failed)} expert trajectories earned less than reward 1, as that of task {failed[0]}")
    output_dir.mkdir(parents=True, exist_ok=True)
    file, text = output_dir / "settings.json", json.dumps(asdict(settings), indent=1)
    if file.exists() and last_checkpoint(output_dir) and file.read_text() != text:
        raise ValueError(f"{output_dir} holds a run with other settings; choose another folder or remove it")
    write_whole(file, text)


def build_trainer(lm: LanguageModel, run: GSPORun) -> GSPOTrainer:
    """The trainer over a dummy data set of slots: goals are chosen when a round begins, not by a data loader."""
    settings = run.settings
    config = GRPOConfig(**config_arguments(settings, run.output_dir, str(lm.device)))

    def reward(prompts, completions, episode_reward, **columns) -> list[float]:
        return episode_reward

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="You are using 'rollout_func'")
        return GSPOTrainer(
            model=lm.model,
            args=config,
            reward_funcs=reward,
            train_dataset=Dataset.from_dict({"prompt": ["slot"] * settings.groups_per_update}),
            processing_class=lm.tokenizer,
            rollout_func=run.rollouts,
            run=run,
        )


def train_gspo(
    lm: LanguageModel,
    tasks: Sequence[Task],
    world: World,
    experts: Experts,
    output_dir: str | Path,
    settings: RLSettings,
    starts: Mapping[TaskId, Observation] | None = None,
    evaluate: Callable[[LanguageModel, int], float] | None = None,
    on_update: Callable[[Row], None] | None = None,
    audit: Callable[[list[Trajectory]], Row] | None = None,
) -> LanguageModel:
    """Train a policy in a world, in place, and return it: the best by validation, else the last.

    experts: task id -> trajectories that may be interleaved. starts: task id -> start page, for worlds that cannot open
    one. evaluate(lm, update) is called before the first update and every `eval_every`; audit(episodes) gives further
    columns then (dream/true agreement, say). output_dir receives metrics.csv, trajectories.jsonl, checkpoints, and
    the adapters best/ and last/. A run that was stopped goes on where its latest checkpoint stands.
    Raises TrainingDiverged when the loss is not a number; Ctrl-C and it leave the adapter in last/.
    """
    output_dir = Path(output_dir)
    check_inputs(tasks, experts, output_dir, settings, starts)
    prepare_lora(lm, settings)
    run = GSPORun(lm, tasks, world, experts, output_dir, settings, starts, evaluate, on_update, audit)
    base = lm.model.get_base_model()
    forward = base.__dict__.get("forward")
    trainer = build_trainer(lm, run)
    checkpoint = last_checkpoint(output_dir)
    done = run.resume(checkpoint) if checkpoint else 0
    if done < settings.updates:
        try:
            if not checkpoint and evaluate:
                run._write({"update": 0, **run.validate(0)})
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            run.save_adapter("last")
            base.__dict__.pop("forward", None)  # TRL leaves its patched forward on the model
            if forward:
                base.forward = forward
    run.load_adapter("best" if settings.keep_best and run.best else "last")
    lm.model.eval()
    return lm
