"""GSPO: its formulas by hand, alignment of rewards and masks, and probe worlds that training must solve."""

import copy
import dataclasses
import math
import random

import pytest
import torch
from peft import LoraConfig, get_peft_model
from trl import GRPOConfig

from dynaweb_lite import gspo, rl
from dynaweb_lite.groups import (
    GoalStatistics,
    Group,
    count_expert_members,
    draw_groups,
    group_advantages,
    keep_groups,
    play_groups,
)
from dynaweb_lite.gspo import TrainingDiverged, token_logprobs
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.metrics import read_metrics
from dynaweb_lite.observation import Element, Observation
from dynaweb_lite.policy import LanguagePolicy, encode_episode
from dynaweb_lite.rl import GSPORun, RLSettings, build_trainer, config_arguments, prepare_lora, train_gspo
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Step, Trajectory
from dynaweb_lite.worlds import WorldStep, rollout

PAGE = Observation("Red mug", "http://shop.test/", (Element(1, "link", "Red mug"), Element(2, "link", "blue lamp")))
TASKS = [Task(i, ("shopping",), "", "buy the red mug", {}) for i in range(4)]
SMALL = RLSettings(
    updates=2, groups_per_update=2, group_size=4, max_dream_steps=2, max_new_tokens=5, oversample=1.0, save_every=1
)


class OneClick:
    """One page, two links: a click on the right one earns 1 and ends, anything else ends without."""

    name = "one click"

    def __init__(self, right: str = "click [1]") -> None:
        self.right = right

    def reset(self, tasks, starts=None):
        return [PAGE for _ in tasks]

    def step(self, actions):
        ended = [WorldStep(PAGE, float(a == self.right), terminated=True) for a in actions]
        return [s if a is not None else None for s, a in zip(ended, actions, strict=True)]

    def close(self):
        pass


class Coin(OneClick):
    """Rewards by chance, whatever the policy does: spread for tests of the machinery."""

    def __init__(self):
        self.rng = random.Random(0)

    def step(self, actions):
        ended = [WorldStep(PAGE, float(self.rng.random() < 0.5), terminated=True) for _ in actions]
        return [s if a is not None else None for s, a in zip(ended, actions, strict=True)]


def expert(task_id=0, action="click [1]", steps=1) -> Trajectory:
    made = [Step(PAGE, action, PAGE, reward=float(i == steps - 1)) for i in range(steps)]
    return Trajectory(task_id, "buy the red mug", made, "expert", terminated=True)


def prime(lm, replies=("click [1]", "click [2]"), steps=60):
    """Teach a toy model the action language: the given replies with equal chances."""
    episodes = [encode_episode(lm, expert(action=r)) for r in replies]
    ids = torch.tensor([e.prompt_ids + e.completion_ids for e in episodes])
    scored = torch.tensor([e.completion_mask for e in episodes])
    optimizer = torch.optim.Adam(lm.model.parameters(), 3e-3)
    for _ in range(steps):
        loss = -token_logprobs(lm.model, ids, torch.ones_like(ids), scored)[0].sum() / scored.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return lm


def success(lm, world, episodes=32) -> float:
    policy = LanguagePolicy(lm, temperature=1.0, max_new_tokens=5, seed=5)
    return sum(t.reward for t in rollout(policy, world, TASKS[:1] * episodes, 1)) / episodes


def make_trainer(lm, tmp_path, settings=SMALL, experts=None, world=None):
    prepare_lora(prime(lm, steps=10), settings)
    run = GSPORun(lm, TASKS, world or Coin(), experts or {}, tmp_path, settings, None, None, None, None)
    return build_trainer(lm, run), run


def generation_batch(trainer):
    count = trainer.args.generation_batch_size
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    return trainer._generate_and_score_completions([{"prompt": "slot"} for _ in range(count)])


# Settings and TRL's interface


def test_every_argument_exists_in_the_installed_trl(tmp_path):
    known = {f.name for f in dataclasses.fields(GRPOConfig)}
    for device in ("cpu", "cuda:0"):
        assert set(config_arguments(SMALL, tmp_path, device)) <= known
    config = GRPOConfig(**config_arguments(SMALL, tmp_path, "cpu"))
    assert (config.loss_type, config.importance_sampling_level, config.generation_batch_size) == ("grpo", "sequence", 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group_size": 1}, "group_size"),
        ({"updates": 3, "minibatches": 2}, "multiple"),
        ({"rows_per_forward": 3}, "rows_per_forward"),
        ({"replace_mode": "half"}, "replace_mode"),
        ({"real_share": 1.5}, "shares"),
        ({"temperature": 0.0}, "temperature"),
        ({"expert_members": 8}, "expert_members"),
    ],
)
def test_settings_say_what_is_wrong(change, message):
    with pytest.raises(ValueError, match=message):
        RLSettings(**change)


# Formulas


def test_token_logprobs_equal_the_full_softmax(toy_model):
    """Against the model's own logits, with padding on both sides, temperature and rows of unlike length."""
    torch.manual_seed(0)
    ids = torch.randint(4, 200, (3, 10))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1, 1, 0], [1] * 10, [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]])
    scored = mask[:, 4:] * torch.tensor([1, 0, 1, 1, 0, 1])
    logps, entropies = token_logprobs(toy_model.model, ids, mask, scored, temperature=0.7, chunk_rows=2)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    full = toy_model.model(ids, attention_mask=mask, position_ids=positions).logits[:, 3:-1] / 0.7
    expected = full.log_softmax(-1).gather(2, ids[:, 4:, None]).squeeze(2)
    torch.testing.assert_close(logps, expected * scored, atol=1e-5, rtol=1e-4)
    entropy = torch.distributions.Categorical(logits=full).entropy()
    torch.testing.assert_close(entropies, entropy * scored, atol=1e-5, rtol=1e-4)


def test_advantages_by_hand(toy_model, tmp_path):
    """A group with rewards 1 0 0 1 has mean 1/2 and sample deviation sqrt(1/3); a group of equal rewards has zeros."""
    trainer, run = make_trainer(toy_model, tmp_path)
    rewards = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    original = run.rollouts
    trainer.rollout_func = lambda prompts, t: {**original(prompts, t), "episode_reward": rewards}
    advantages = generation_batch(trainer)["advantages"]
    expected = 0.5 / (math.sqrt(1 / 3) + 1e-4)
    torch.testing.assert_close(advantages[:4], torch.tensor([1.0, -1, -1, 1]) * expected)
    assert advantages[4:].tolist() == [0.0] * 4
    torch.testing.assert_close(advantages[:4], torch.tensor(group_advantages(rewards[:4])))


def hand_loss(trainer, batch, old, epsilon, epsilon_high):
    """The formula of the module's docstring, straight from full logits."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    width = batch["completion_ids"].size(1)
    logits = trainer.model(ids, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0)).logits
    logits.retain_grad()
    logps = logits.log_softmax(-1)[:, -width - 1 : -1].gather(2, batch["completion_ids"][:, :, None]).squeeze(2)
    own = batch["completion_mask"] * batch["tool_mask"]
    old = logps.detach() if old is None else old
    ratio = (((logps - old) * own).sum(1) / own.sum(1)).exp()
    advantages = batch["advantages"]
    loss = -torch.min(ratio * advantages, ratio.clamp(1 - epsilon, 1 + epsilon_high) * advantages).mean()
    return loss, logits, own


def gradient(trainer):
    found = [p.grad.flatten() for p in trainer.model.parameters() if p.requires_grad and p.grad is not None]
    trainer.model.zero_grad()
    return torch.cat(found)


@pytest.mark.parametrize("off_policy", [False, True])
def test_loss_and_gradient_equal_the_formula(toy_model, tmp_path, off_policy):
    trainer, _ = make_trainer(toy_model, tmp_path)
    batch = generation_batch(trainer)
    batch["advantages"] = torch.tensor([1.2, -0.4, -0.4, -0.4, 0, 0, 0, 0])  # the second group's rewards are equal
    old = None
    if off_policy:
        with torch.no_grad():
            ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
            mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
            old = token_logprobs(trainer.model, ids, mask, batch["completion_mask"])[0]
        old = old + torch.linspace(-3e-4, 3e-4, len(old))[:, None]  # some ratios inside the clip range, some outside
        batch["old_per_token_logps"] = old
    loss = trainer._compute_loss(trainer.model, batch)
    loss.backward()
    ours = gradient(trainer)
    by_hand, _, _ = hand_loss(trainer, batch, old, SMALL.epsilon, SMALL.epsilon_high)
    by_hand.backward()
    torch.testing.assert_close(loss, by_hand, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(ours, gradient(trainer), atol=1e-7, rtol=1e-3)


def test_pages_carry_no_gradient(toy_model, tmp_path):
    """Logits that predict page tokens or padding get exactly zero gradient; those of replies do not."""

    class TwoPages(Coin):
        def step(self, actions):
            return [s and dataclasses.replace(s, terminated=False) for s in super().step(actions)]

    trainer, _ = make_trainer(toy_model, tmp_path, world=TwoPages())
    batch = generation_batch(trainer)
    assert (batch["completion_mask"] * (1 - batch["tool_mask"])).sum() > 20, "the batch must hold page tokens"
    loss, logits, own = hand_loss(trainer, batch, None, SMALL.epsilon, SMALL.epsilon_high)
    loss.backward()
    touched = logits.grad.abs().sum(-1)[:, -own.size(1) - 1 : -1] > 0
    by_hand = gradient(trainer)
    assert torch.equal(touched, own.bool() & (batch["advantages"] != 0)[:, None])
    trainer._compute_loss(trainer.model, batch).backward()
    torch.testing.assert_close(gradient(trainer), by_hand, atol=1e-7, rtol=1e-3)


def test_accumulation_changes_nothing(toy_model, tmp_path):
    """Two halves of a batch, accumulated, give the gradient of the whole."""
    trainer, _ = make_trainer(toy_model, tmp_path)
    batch = generation_batch(trainer)
    trainer._compute_loss(trainer.model, batch).backward()
    whole = gradient(trainer)
    trainer.current_gradient_accumulation_steps = 2
    for half in (slice(0, 4), slice(4, 8)):
        part = {k: v[half] if v.dim() else v for k, v in batch.items()}
        trainer._buffered_inputs, trainer._step = [part], 1
        trainer.args.steps_per_generation = 1
        trainer._prepare_inputs = lambda inputs: inputs
        trainer.training_step(trainer.model, part, None)
    torch.testing.assert_close(gradient(trainer), whole, atol=1e-7, rtol=1e-3)


# Groups


def test_goal_statistics_by_hand():
    statistics = GoalStatistics(discount=0.5)
    assert statistics.success(1) == 0.5 and statistics.spread(1) == 0.25
    statistics.add(1, [1, 1, 1, 0])
    assert statistics.success(1) == pytest.approx(4 / 6)
    statistics.add(1, [0, 0])
    assert statistics.success(1) == pytest.approx((1.5 + 1) / (2 + 2 + 2))
    copy = GoalStatistics()
    copy.load(statistics.to_json())
    assert copy.counts == statistics.counts


def test_goals_come_from_both_pools_and_favour_uncertain_ones():
    settings = dataclasses.replace(SMALL, expert_goal_probability=0.4)
    statistics = GoalStatistics(discount=1.0)
    statistics.add(1, [1.0] * 98)  # goal 1 is solved; 2 and 3 are not known
    rng, drawn = random.Random(0), []
    for _ in range(2000):
        drawn += draw_groups(rng, TASKS, {0: [expert()]}, statistics, settings, 1)
    share = {t.task_id: sum(g.task is t for g in drawn) / 2000 for t in TASKS}
    assert share[0] == pytest.approx(0.4, abs=0.04)
    solved = 0.01 * 0.99 + settings.weight_floor
    assert share[1] == pytest.approx(0.6 * solved / (solved + 2 * (0.25 + settings.weight_floor)), abs=0.03)


@pytest.mark.parametrize(("mode", "low", "high"), [("each_with_probability", 1.8, 2.1), ("fixed_count", 2, 2)])
def test_expert_members_are_as_many_as_asked(mode, low, high):
    settings = dataclasses.replace(SMALL, replace_mode=mode, real_share=0.5, expert_members=2)
    counts = [count_expert_members(random.Random(i), settings) for i in range(1000)]
    assert low <= sum(counts) / 1000 <= high and max(counts) < settings.group_size


def test_intermediate_starts_hand_over_the_rest_of_the_expert():
    settings = dataclasses.replace(SMALL, intermediate_share=1.0, expert_goal_probability=1.0)
    experts = {0: [expert(steps=3)]}
    groups = [draw_groups(random.Random(i), TASKS, experts, GoalStatistics(), settings, 1)[0] for i in range(30)]
    begun = [g for g in groups if g.start is not None and g.experts]
    assert begun and all(len(g.experts[0].steps) in (1, 2) and g.experts[0].reward == 1 for g in begun)
    with pytest.raises(ValueError, match="starts"):
        play_groups(begun[:1], None, None, settings, None)


def test_groups_with_spread_are_kept_first():
    def group(*rewards):
        made = [Trajectory(0, "", [Step(PAGE, "", PAGE, reward=r)]) for r in rewards]
        return Group(TASKS[0], [], rollouts=made)

    groups = [group(0, 0), group(0, 1), group(1, 1), group(1, 0)]
    assert keep_groups(groups, 2) == [groups[1], groups[3]]
    assert Group(TASKS[0], [expert()], rollouts=group(0).rollouts).rewards == [0, 1]


def test_experts_join_their_group_with_reward_one_and_ratio_one(toy_model, tmp_path):
    settings = dataclasses.replace(SMALL, replace_mode="fixed_count", expert_members=2, expert_goal_probability=1.0)
    experts = {t.task_id: [expert(t.task_id)] for t in TASKS}
    trainer, run = make_trainer(toy_model, tmp_path, settings, experts, OneClick("never"))
    batch = generation_batch(trainer)
    reply = torch.tensor(toy_model.reply_tokens("click [1]"))
    for row in (2, 3, 6, 7):
        own = batch["completion_mask"][row].bool()
        assert torch.equal(batch["completion_ids"][row][own], reply) and batch["tool_mask"][row][own].all()
        assert batch["advantages"][row] > 0
    assert (batch["advantages"][[0, 1, 4, 5]] < 0).all()
    torch.testing.assert_close(batch["advantages"].view(2, 4).sum(1), torch.zeros(2), atol=1e-5, rtol=0)
    trainer._compute_loss(trainer.model, batch)
    assert trainer.ratios == [1.0] * 8
    assert run._round["reward"] == 0.0 and run._round["expert_share"] == 0.5


def test_rewards_stay_with_their_episodes(toy_model, tmp_path):
    """Every completion that is the rewarded click, and no other, has a positive advantage."""
    trainer, _ = make_trainer(prime(toy_model), tmp_path, world=OneClick())
    batch = generation_batch(trainer)
    for ids, own, advantage in zip(batch["completion_ids"], batch["tool_mask"], batch["advantages"], strict=True):
        text = toy_model.decode([t for t, mine in zip(ids.tolist(), own.tolist(), strict=True) if mine])
        assert (advantage > 0) == text.startswith("click [1]")
    assert (batch["advantages"] > 0).any()


# Probe worlds: whole runs


PROBE = RLSettings(
    updates=12,
    groups_per_update=2,
    group_size=8,
    max_dream_steps=1,
    max_new_tokens=5,
    oversample=1.0,
    learning_rate=1e-2,
    warmup_updates=0,
    eval_every=4,
    save_every=4,
)


def test_a_one_click_site_is_solved(toy_model, tmp_path):
    lm = train_gspo(prime(toy_model), TASKS, OneClick(), {}, tmp_path, PROBE)
    assert success(lm, OneClick()) > 0.9
    rows = read_metrics(tmp_path / "metrics.csv")
    assert [row["update"] for row in rows] == list(range(1, 13))
    assert rows[0]["reward"] < 0.9 and rows[0]["ratio_mean"] == 1.0 and rows[0]["unparsable_share"] < 0.3
    assert (tmp_path / "last" / "adapter_model.safetensors").exists()
    assert (tmp_path / "trajectories.jsonl").exists()


def test_a_lying_world_teaches_the_lie(toy_model, tmp_path):
    lm = train_gspo(prime(toy_model), TASKS, OneClick("click [2]"), {}, tmp_path, PROBE)
    assert success(lm, OneClick("click [2]")) > 0.9
    assert success(lm, OneClick("click [1]")) < 0.1


def test_experts_teach_what_never_happens_by_itself(toy_model, tmp_path):
    """The winning reply has next to no chance at the start; only interleaved experts can bring it in."""
    primed = prime(toy_model, ("click [2]", "click [2]"))
    experts = {t.task_id: [expert(t.task_id)] for t in TASKS}
    lm = train_gspo(primed, TASKS, OneClick(), experts, tmp_path, dataclasses.replace(PROBE, updates=16))
    assert success(lm, OneClick()) > 0.8


def test_off_policy_minibatches_run_and_clip(toy_model, tmp_path):
    settings = dataclasses.replace(PROBE, minibatches=2, num_iterations=2, updates=8)
    train_gspo(prime(toy_model), TASKS, OneClick(), {}, tmp_path, settings)
    rows = read_metrics(tmp_path / "metrics.csv")
    assert [row["update"] for row in rows] == [4, 8]
    assert any(row["ratio_mean"] != 1 for row in rows) and any(row["clip_share"] > 0 for row in rows)


# Runs that stop


class Killed(Exception):
    pass


def test_a_killed_run_resumes_and_ends_like_one_that_was_not(toy_model, tmp_path):
    prime(toy_model)

    def fresh():
        return LanguageModel(copy.deepcopy(toy_model.model), toy_model.tokenizer, "toy")

    def die(row):
        if row["update"] == 7:
            raise Killed

    def run(folder, **options):
        return train_gspo(fresh(), TASKS, OneClick(), {}, tmp_path / folder, PROBE, evaluate=lambda lm, u: u, **options)

    whole = run("whole")
    with pytest.raises(Killed):
        run("killed", on_update=die)
    (tmp_path / "killed" / "checkpoint-8").mkdir()  # as if it had died again while writing
    resumed = run("killed")
    rows = [read_metrics(tmp_path / f / "metrics.csv") for f in ("whole", "killed")]
    assert [r["update"] for r in rows[1]] == list(range(13))
    assert [r.get("reward") for r in rows[0]] == [r.get("reward") for r in rows[1]]
    for a, b in zip(whole.model.state_dict().values(), resumed.model.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b)
    again = run("killed")  # a finished run returns what it learnt
    torch.testing.assert_close(list(again.model.state_dict().values()), list(resumed.model.state_dict().values()))


def test_the_best_adapter_by_validation_is_returned(toy_model, tmp_path):
    scores = {0: 0.1, 4: 0.9, 8: 0.2, 12: 0.3}
    kept = {}

    def evaluate(lm, update):
        kept[update] = {k: v.clone() for k, v in lm.model.state_dict().items() if "lora" in k}
        return scores[update]

    lm = train_gspo(prime(toy_model), TASKS, OneClick(), {}, tmp_path, PROBE, evaluate=evaluate)
    assert sorted(kept) == [0, 4, 8, 12]
    state = lm.model.state_dict()
    assert all(torch.equal(state[k], v) for k, v in kept[4].items())
    assert any(not torch.equal(state[k], v) for k, v in kept[12].items())


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_adapter(toy_model, tmp_path, monkeypatch):
    calls = iter(range(1000))

    def failing(*args, **options):
        logps, entropies = token_logprobs(*args, **options)
        return logps * (1.0 if next(calls) < 5 else float("nan")), entropies

    monkeypatch.setattr(gspo, "token_logprobs", failing)
    with pytest.raises(TrainingDiverged, match="learning_rate"):
        train_gspo(prime(toy_model), TASKS, Coin(), {}, tmp_path, PROBE)
    assert len(read_metrics(tmp_path / "metrics.csv")) == 5
    weights = rl.load_peft_weights(str(tmp_path / "last"), device="cpu")
    assert weights and all(torch.isfinite(w).all() for w in weights.values())


@pytest.mark.parametrize("stop_after", [None, 1])
def test_the_models_own_adapter_goes_on_and_others_stay(toy_model, tmp_path, stop_after):
    """A policy's adapter beside a world model's on one base; the run is cut after an update, then resumed."""
    base = {k: v.clone() for k, v in toy_model.model.state_dict().items()}
    toy_model.model = get_peft_model(toy_model.model, LoraConfig(r=2, target_modules="all-linear"), "world")
    toy_model.model.add_adapter("sft", LoraConfig(r=3, target_modules="all-linear"))
    for parameter in toy_model.model.parameters():
        parameter.requires_grad_(False)  # as adapters that were loaded for use come
    others = {k: v.clone() for k, v in toy_model.model.state_dict().items() if ".world." in k}
    toy_model.adapter = "sft"

    def stop(row):
        if row["update"] == 2:
            raise Killed

    settings = dataclasses.replace(SMALL, learning_rate=0.01, warmup_updates=0, updates=4)
    if stop_after:
        with pytest.raises(Killed):
            train_gspo(toy_model, TASKS, Coin(), {}, tmp_path, settings, on_update=stop)
    lm = train_gspo(toy_model, TASKS, Coin(), {}, tmp_path, settings)
    state = lm.model.state_dict()
    assert lm.adapter == "sft" and lm.model.active_adapter == "sft"
    assert any(v.abs().sum() > 0 for k, v in state.items() if "lora_B.sft" in k)
    assert all(torch.equal(state[k], v) for k, v in others.items())
    plain = {k.removeprefix("base_model.model.").replace(".base_layer", ""): v for k, v in state.items()}
    assert all(torch.equal(plain[k], v) for k, v in base.items())
    assert rl.load_peft_weights(str(tmp_path / "last"), device="cpu")
    assert [row["update"] for row in read_metrics(tmp_path / "metrics.csv")] == [1, 2, 3, 4]


def test_bad_input_is_refused_at_once(toy_model, tmp_path):
    def train(tasks=TASKS, experts=None, settings=SMALL, **options):
        return train_gspo(toy_model, tasks, Coin(), experts or {}, tmp_path, settings, **options)

    with pytest.raises(ValueError, match="at least one task"):
        train(tasks=[])
    with pytest.raises(ValueError, match="no start page"):
        train(starts={0: PAGE})
    with pytest.raises(ValueError, match="less than reward 1"):
        failed = Trajectory(0, "", [Step(PAGE, "click [1]", PAGE)])
        train(experts={0: [failed]})
    train()
    with pytest.raises(ValueError, match="other settings"):
        train(settings=dataclasses.replace(SMALL, learning_rate=1.0))
