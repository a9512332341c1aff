"""World model, fidelity, judge, fine-tuning, and the imagined web that they make; on a toy model, in seconds."""

import csv
import json
from dataclasses import replace

import pytest
import torch

from dynaweb_lite.change_forms import EDIT_SCRIPT
from dynaweb_lite.fidelity import fidelity, score_transition, summarise
from dynaweb_lite.imagined_web import ImaginedWeb
from dynaweb_lite.judge import RuleJudge, SelfJudge, Verdict, audit, judge_examples
from dynaweb_lite.language_model import Generated, ModelError
from dynaweb_lite.observation import Observation, parse_observation
from dynaweb_lite.prompts import assistant, user
from dynaweb_lite.sft import Example, SFTSettings, TokenExample, episode_example, token_example, train_sft
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Transition
from dynaweb_lite.world_model import Prediction, WorldModel, pair_key, read_replies, training_examples
from dynaweb_lite.worlds import Decision, rollout

HOME = parse_observation("Tab 0 (current): Home | http://shop.test/\n[1] link 'Red mug'\n[2] link 'My Cart'")
MUG = parse_observation(
    "Tab 0 (current): Red mug | http://shop.test/red-mug\n[1] link 'My Cart'\n[2] heading 'Red mug'\n"
    "\t[3] StaticText '$12.50'\n[4] button 'Add to Cart'\n[5] textbox 'Search' value: ''"
)
TYPED = parse_observation(MUG.text.replace("value: ''", "value: 'lamp'"))
CART = parse_observation("Tab 0 (current): My Cart | http://shop.test/cart\n[1] heading 'My Cart'\n[2] StaticText '0'")
FULL = parse_observation(CART.text.replace("'0'", "'1'"))
TRANSITIONS = [
    Transition(HOME, "click [1]", MUG),
    Transition(HOME, "click [2]", CART),
    Transition(MUG, "click [4]", FULL),
    Transition(MUG, "type [5] [lamp] [0]", TYPED),
    Transition(MUG, "click [2]", MUG),
]


def read_reply(page, reply):
    return read_replies(EDIT_SCRIPT, [page], [reply], lambda chats: [])[0]


QUICK = SFTSettings(learning_rate=1e-2, max_updates=140, batch_size=5, lora_rank=0, warmup_share=0.1)


class ScriptedModel:
    """Stands in for a language model: replies by what the prompt holds."""

    def __init__(self, rule):
        self.rule, self.prompts_seen = rule, 0

    def prompt_tokens(self, messages):
        return messages[-1]["content"]

    def generate(self, prompts, max_new_tokens, temperature=0.0, top_p=1.0, generator=None):
        self.prompts_seen += len(prompts)
        return [Generated((1, 2), self.rule(p), (-0.5, -1.5)) for p in prompts]


def oracle(prompt: str) -> str:
    known = {training_examples([t])[0].messages[-1]["content"]: training_examples([t])[0].reply for t in TRANSITIONS}
    return known.get(prompt, "Nonsense.\nthis is no edit script")


def task(intent: str = "buy the red mug") -> Task:
    return Task(1, ("shopping",), "__SHOPPING__/", intent, {})


# World model


def test_a_toy_world_model_overfits_five_transitions_and_then_predicts_them(toy_model, tmp_path):
    trained = train_sft(toy_model, training_examples(TRANSITIONS), tmp_path / "world", QUICK, progress=False)
    model = WorldModel(trained, max_new_tokens=120)
    assert [p.observation.text for p in model.predict([(t.observation, t.action) for t in TRANSITIONS])] == [
        t.next_observation.text for t in TRANSITIONS
    ]
    untrained = fidelity(WorldModel(toy_model, max_new_tokens=20), TRANSITIONS)
    assert fidelity(model, TRANSITIONS)["changed_f1"] == 1.0 > untrained["changed_f1"]


def test_equal_questions_are_asked_once_and_counted():
    lm = ScriptedModel(oracle)
    model = WorldModel(lm)
    first = model.predict([(HOME, "click [1]"), (HOME, "click [2]"), (HOME, "click('1')")])
    assert [p.cached for p in first] == [False, False, True]
    again = model.predict([(HOME.with_error("no such link"), "click [1]")])
    assert (again[0].observation, again[0].cached, lm.prompts_seen) == (MUG, True, 2)
    assert model.counts == {"predictions": 4, "cache_hits": 2, "cache_misses": 2, "unparsable": 0}


def test_sampled_predictions_are_never_cached():
    lm = ScriptedModel(oracle)
    model = WorldModel(lm, temperature=1.0)
    assert not any(p.cached for p in model.predict([(HOME, "click [1]")] * 3) + model.predict([(HOME, "click [1]")]))
    assert lm.prompts_seen == 4 and not model.cache


@pytest.mark.parametrize("change", ["no edit script", "= [1] [9]", "Tab zero\n= [1] [1]", "<|user|>"])
def test_an_unparsable_reply_keeps_the_page_and_is_counted(change):
    model = WorldModel(ScriptedModel(lambda prompt: f"Opens it.\n{change}"))
    (prediction,) = model.predict([(MUG, "click [1]")])
    assert (prediction.observation, prediction.parsed, prediction.reason) == (MUG, False, "Opens it.")
    assert model.unparsable == 1


def test_confidence_is_the_geometric_mean_of_token_probabilities():
    reply = Generated((1, 2), "Nothing changes.", (-1.0, -3.0))
    assert read_reply(HOME, reply).confidence == pytest.approx(torch.tensor(-2.0).exp().item())


def test_training_examples_are_exact_and_distinct():
    twice = [*TRANSITIONS, Transition(HOME.with_error("refused"), "click [1]", MUG)]
    examples = training_examples(twice)
    assert len(examples) == 5 and len(training_examples(twice, deduplicate=False)) == 6
    for example, t in zip(examples, TRANSITIONS, strict=True):
        assert read_reply(t.observation, Generated((), example.reply, ())).observation.text == t.next_observation.text
    assert examples[4].reply == "Nothing changes."


# Fidelity


def test_changed_lines_f1_by_hand():
    """Real: '0' goes, '1' comes. Imagined: '0' goes, '2' comes. One of two lines agrees."""
    imagined = parse_observation(CART.text.replace("'0'", "'2'"))
    score = score_transition(CART, FULL, imagined)
    assert (score.hits, score.predicted, score.real) == (1, 2, 2)
    assert score.changed_f1 == 0.5 and score.line_f1 == pytest.approx(2 / 3) and not score.exact


def test_nothing_changed_and_nothing_imagined_is_right():
    assert score_transition(MUG, MUG, MUG).changed_f1 == 1.0
    assert score_transition(MUG, MUG, TYPED).changed_f1 == 0.0
    assert score_transition(MUG, TYPED, MUG).changed_f1 == 0.0


def test_fidelity_splits_seen_from_unseen_and_names_its_baseline():
    seen = [pair_key(HOME, "click [1]"), pair_key(HOME, "click [2]")]

    class WrongWhenUnseen:
        def predict(self, pairs):
            return [
                Prediction(next(t.next_observation for t in TRANSITIONS if (t.observation, t.action) == (o, a)), "", "")
                if pair_key(o, a) in seen
                else Prediction(o, "", "", parsed=False)
                for o, a in pairs
            ]

    measured = fidelity(WrongWhenUnseen(), TRANSITIONS, seen, batch_size=2)
    assert (measured["n"], measured["seen"]["n"], measured["unseen"]["n"]) == (5, 2, 3)
    assert measured["seen"]["changed_f1"] == 1.0 and measured["unseen"]["changed_f1"] == pytest.approx(1 / 3)
    assert measured["parsed"] == pytest.approx(0.4) and measured["exact"] == pytest.approx(0.6)
    assert measured["nothing_changes"]["changed_f1"] == pytest.approx(0.2)
    assert measured["nothing_changes"]["changed_f1_moved"] == 0.0
    with pytest.raises(ValueError, match="no transitions"):
        fidelity(WrongWhenUnseen(), [])


def test_the_interval_of_mean_changed_f1_by_hand():
    """Scores 1, 1, 0, 0: mean 0.5, sample variance 1/3, margin 1.96 · sqrt(1/12) = 0.566, cut to [0, 1]."""
    right, wrong = score_transition(CART, FULL, FULL), score_transition(CART, FULL, CART)
    assert summarise([right, right, wrong, wrong])["changed_f1_interval"] == [0.0, 1.0]
    many = summarise([right, wrong] * 50)
    assert many["changed_f1_interval"] == pytest.approx([0.5 - 0.0985, 0.5 + 0.0985], abs=1e-3)


# Fine-tuning


def test_loss_falls_on_reply_tokens_only(toy_model):
    row = token_example(toy_model, Example([user("page\nGoal: x")], "click [1]"))
    learnt = [token for token, label in zip(row.input_ids, row.labels, strict=True) if label != -100]
    assert learnt == toy_model.reply_tokens("click [1]") and learnt[-1] == toy_model.end_of_turn
    turns = [user("one"), assistant("click [1]"), user("two"), assistant("stop [yes]")]
    episode = episode_example(toy_model, turns)
    learnt = [token for token, label in zip(episode.input_ids, episode.labels, strict=True) if label != -100]
    assert learnt == toy_model.reply_tokens("click [1]") + toy_model.reply_tokens("stop [yes]")
    rendered = toy_model.tokenizer.apply_chat_template(turns, tokenize=False)
    assert episode.input_ids == toy_model.tokenizer(rendered, add_special_tokens=False)["input_ids"]
    with pytest.raises(ModelError, match="end with a reply"):
        episode_example(toy_model, turns[:3])


def test_the_trainer_s_first_loss_is_the_mean_over_reply_tokens(toy_model, tmp_path):
    rows = [token_example(toy_model, e) for e in training_examples(TRANSITIONS)]
    total = count = 0.0
    for row in rows:
        logits = toy_model.model(torch.tensor([row.input_ids])).logits[0, :-1]
        losses = torch.nn.functional.cross_entropy(logits, torch.tensor(row.labels[1:]), reduction="none")
        total, count = total + losses.sum().item(), count + sum(row.loss_mask)
    still = SFTSettings(learning_rate=1e-12, max_updates=10, batch_size=5)
    train_sft(toy_model, rows, tmp_path, still, progress=False)
    with (tmp_path / "metrics.csv").open() as file:
        assert float(next(csv.DictReader(file))["loss"]) == pytest.approx(total / count, rel=1e-3)


def test_the_base_is_untouched_and_a_finished_run_is_loaded(toy_model, tmp_path):
    before = {k: v.clone() for k, v in toy_model.model.state_dict().items()}
    examples, settings = training_examples(TRANSITIONS), replace(QUICK, max_updates=12, lora_rank=4)
    trained = train_sft(toy_model, examples, tmp_path, settings, lambda lm: {"success": 0.25}, progress=False)
    assert all(torch.equal(v, before[k]) for k, v in toy_model.model.state_dict().items())
    written = (tmp_path / "adapter_model.safetensors").stat().st_mtime_ns
    again = train_sft(toy_model, examples, tmp_path, settings, progress=False)
    assert (tmp_path / "adapter_model.safetensors").stat().st_mtime_ns == written
    prompt = [toy_model.prompt_tokens(examples[0].messages)]
    assert torch.allclose(again.next_token_logits(prompt), trained.next_token_logits(prompt), atol=1e-5)
    assert not torch.allclose(toy_model.next_token_logits(prompt), trained.next_token_logits(prompt), atol=1e-2)
    record = json.loads((tmp_path / "training.json").read_text())
    assert (record["finished"], record["updates"], record["examples"]) == (True, 12, 5)
    assert "success,0.25" in (tmp_path / "metrics.csv").read_text()
    train_sft(toy_model, examples, tmp_path, replace(settings, seed=1), progress=False)
    assert (tmp_path / "adapter_model.safetensors").stat().st_mtime_ns != written, "other settings must train anew"


def test_an_interrupted_run_goes_on_from_its_checkpoint(toy_model, tmp_path):
    examples, settings = (
        training_examples(TRANSITIONS),
        replace(QUICK, max_updates=12, lora_rank=4, eval_every=8, save_every=6),
    )
    whole = train_sft(toy_model, examples, tmp_path / "whole", settings, progress=False)

    def killed(lm):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_sft(toy_model, examples, tmp_path / "cut", settings, killed, progress=False)
    updates = []
    resumed = train_sft(
        toy_model, examples, tmp_path / "cut", settings, lambda lm: updates.append(1) or {}, progress=False
    )
    assert len(updates) == 2 and not (tmp_path / "cut" / "checkpoints").exists()
    prompt = [toy_model.prompt_tokens(examples[0].messages)]
    assert torch.allclose(resumed.next_token_logits(prompt), whole.next_token_logits(prompt), atol=1e-4)


def test_examples_that_are_too_long_are_left_out_and_counted(toy_model, tmp_path):
    rows = [TokenExample([5, 6], [0, 1]), TokenExample([5] * 50, [1] * 50)]
    settings = SFTSettings(max_updates=1, max_length=10)
    train_sft(toy_model, rows, tmp_path, settings, progress=False)
    assert json.loads((tmp_path / "training.json").read_text())["left_out"] == 1
    with pytest.raises(ModelError, match="raise max_length"):
        train_sft(toy_model, rows[1:], tmp_path, settings, progress=False)


def test_settings_say_what_is_wrong():
    with pytest.raises(ValueError, match="epochs or max_updates"):
        SFTSettings(epochs=0)


# Judge


def verdicts() -> list[Verdict]:
    return [
        Verdict("buy the red mug", FULL, "", True),
        Verdict("buy the red mug", CART, "", False),
        Verdict("what does it cost", MUG, "$12.50", True),
        Verdict("what does it cost", MUG, "$3.00", False),
        Verdict("what does it cost", HOME, "$12.50", False),
    ]


def test_a_toy_judge_learns_its_labels_and_passes_its_audit(toy_model, tmp_path):
    before = SelfJudge(toy_model).probabilities([v.item for v in verdicts()])
    trained = train_sft(
        toy_model, judge_examples(verdicts()), tmp_path, replace(QUICK, max_updates=100), progress=False
    )
    judge = SelfJudge(trained)
    found = audit(judge, verdicts())
    assert found["agreement"] == 1.0 and (found["n"], found["n_failures"], found["n_successes"]) == (5, 3, 2)
    assert judge.probabilities([v.item for v in verdicts()]) != before
    assert len(judge.cache) == 5 and all(0 <= p <= 1 for p in judge.cache.values())


def test_audit_counts_both_kinds_of_error():
    always = audit(RuleJudge(lambda goal, page, answer: True), verdicts())
    assert always["agreement"] == 0.4 and always["false_positive_rate"] == 1.0 and always["false_negative_rate"] == 0.0
    never = audit(RuleJudge(lambda goal, page, answer: False), verdicts()[:1])
    assert never["false_negative_rate"] == 1.0 and never["false_positive_rate"] is None


def test_judge_examples_are_balanced():
    replies = [e.reply for e in judge_examples(verdicts())]
    assert (replies.count("yes"), replies.count("no")) == (3, 3)
    assert len(judge_examples(verdicts() * 2, balance=False)) == 5


# Imagined web


def imagined(judge=None) -> ImaginedWeb:
    rule = judge or RuleJudge(lambda goal, page, answer: page == FULL)
    return ImaginedWeb(WorldModel(ScriptedModel(oracle)), rule, lambda task: HOME)


class Script:
    """A policy that plays fixed actions."""

    def __init__(self, *actions: str):
        self.actions = actions

    def act(self, episodes, observations):
        return [Decision(self.actions[len(e.steps)]) for e in episodes]


def test_a_rollout_dreams_its_way_to_the_reward():
    dreams = rollout(Script("click [1]", "click [4]", "stop []"), imagined(), [task(), task()], 5, source="dream")
    assert [d.reward for d in dreams] == [1.0, 1.0] and all(d.terminated and not d.truncated for d in dreams)
    assert [o.title for o in dreams[0].observations] == ["Home", "Red mug", "My Cart", "My Cart"]
    (short,) = rollout(Script("click [2]", "stop [0]"), imagined(), [task()], 5)
    assert short.reward == 0.0 and short.terminated and short.answer == "0"


def test_actions_are_refused_as_on_real_pages():
    world = imagined()
    world.reset([task()] * 4, [HOME, HOME, MUG, HOME])
    steps = world.step(["dance", "click [9]", "type [1] [x] [1]", "new_tab"])
    assert [s.observation.last_action_error.split(",")[0].split(" (")[0] for s in steps] == [
        "not an action: 'dance'",
        "no element [9] on this page",
        "cannot type into [1]",
        "new_tab is not supported in an imagined web",
    ]
    assert [s.observation for s in steps] == [HOME, HOME, MUG, HOME] and world.world_model.predictions == 0
    (after, *rest) = world.step(["scroll [down]", None, None, None])
    assert after.observation.last_action_error == "" and rest == [None] * 3


def test_going_back_and_forward_follows_the_dream_s_own_history():
    world = imagined()
    world.reset([task()])

    def do(action: str) -> Observation:
        return world.step([action])[0].observation

    assert do("go_back").last_action_error == "there is no page to go back to"
    assert [do(a) for a in ("click [1]", "type [5] [lamp] [0]", "go_back", "go_forward")] == [MUG, TYPED, HOME, TYPED]
    do("go_back")
    do("click [2]")
    assert do("go_forward").last_action_error == "there is no page to go forward to"


def test_an_unparsable_prediction_keeps_the_page_and_says_so():
    world = imagined()
    world.reset([task()], [CART])
    (step,) = world.step(["click [1]"])
    assert step.observation == CART and step.observation.last_action_error == ""
    assert step.info["parsed"] is False and world.world_model.unparsable == 1 and not step.terminated


def test_predictions_and_verdicts_go_in_one_batch_each():
    batches = []

    class Counting(RuleJudge):
        def judge(self, items):
            batches.append(len(items))
            return super().judge(items)

    world = imagined(Counting(lambda goal, page, answer: answer == "yes"))
    world.reset([task()] * 4)
    steps = world.step(["stop [yes]", "click [1]", "stop [no]", None])
    assert batches == [2] and [s and (s.reward, s.terminated) for s in steps] == [
        (1, True),
        (0, False),
        (0, True),
        None,
    ]
    with pytest.raises(ValueError, match="episode 0 is over"):
        world.step(["click [1]", None, None, None])


def test_a_dream_needs_a_page_to_start_on():
    with pytest.raises(ValueError, match="give starts"):
        ImaginedWeb(WorldModel(ScriptedModel(oracle)), RuleJudge(bool)).reset([task()])
