"""The policy's tokens: what was generated is what is trained on, and every reply stands after its own page."""

import pytest

from dynaweb_lite.observation import Element, Observation
from dynaweb_lite.policy import LanguagePolicy, encode_episode, episode_examples, episode_tokens
from dynaweb_lite.prompts import policy_messages, policy_reply, policy_turn
from dynaweb_lite.tasks import Task
from dynaweb_lite.trajectory import Step, Trajectory
from dynaweb_lite.worlds import WorldStep, rollout

GOAL = "buy the red mug"


def page(name: str) -> Observation:
    return Observation(name, "http://shop.test/", (Element(1, "link", name), Element(2, "button", "Add to Cart")))


PAGES = [page(name) for name in ("Red mug", "My Cart", "Search", "blue lamp")]
TASKS = [Task(i, ("shopping",), "", GOAL, {}) for i in range(2)]


class Corridor:
    """Page after page whatever the action; the third step ends the episode."""

    name = "corridor"

    def reset(self, tasks, starts=None):
        self.position = [0] * len(tasks)
        return [PAGES[0] for _ in tasks]

    def step(self, actions):
        self.position = [p + (a is not None) for p, a in zip(self.position, actions, strict=True)]
        answers = [WorldStep(PAGES[p], float(p == 3), terminated=p == 3) for p in self.position]
        return [s if a is not None else None for s, a in zip(answers, actions, strict=True)]

    def close(self):
        pass


def play(lm, **options):
    policy = LanguagePolicy(lm, temperature=8.0, max_new_tokens=6, **options)  # an untrained model repeats itself at 1
    decisions = []
    episodes = rollout(policy, Corridor(), TASKS, 3, on_step=lambda i, n, d: decisions.append((i, d)))
    return episodes, decisions


def segments(tokens):
    """Runs of equal mask in a completion: [(mask, tokens), …]."""
    runs = []
    for token, mask in zip(tokens.completion_ids, tokens.completion_mask, strict=True):
        if not runs or runs[-1][0] != mask:
            runs.append((mask, []))
        runs[-1][1].append(token)
    return runs


def test_training_sees_exactly_the_generated_tokens(toy_model):
    episodes, decisions = play(toy_model)
    for i, episode in enumerate(episodes):
        own = [token for mask, run in segments(episode_tokens(episode)) if mask for token in run]
        assert own == [token for j, d in decisions if j == i for token in d.tokens]
        assert all(len(d.tokens) == len(d.logprobs) for _, d in decisions)


def test_each_reply_stands_after_its_own_page(toy_model):
    episode = play(toy_model)[0][0]
    tokens = episode_tokens(episode)
    assert tokens.prompt_ids == toy_model.prompt_tokens(policy_messages(GOAL, [], PAGES[0]))
    runs = segments(tokens)
    assert [mask for mask, _ in runs] == [1, 0, 1, 0, 1, 0][: len(runs)] and len(runs) >= 5
    for number, position in enumerate((1, 3), 1):
        shown = toy_model.turn_tokens(policy_turn(GOAL, PAGES[number]))
        assert runs[position][1][-len(shown) :] == shown
        assert episode.steps[number].observation == PAGES[number]


def test_a_cut_reply_is_closed_without_loss(toy_model):
    episode = play(toy_model)[0][0]
    end = toy_model.end_of_turn
    for mask, run in segments(episode_tokens(episode)):
        if mask and run[-1] != end:
            assert len(run) == 6, "only a reply that ran out of tokens may lack its end"
    assert episode_tokens(episode).completion_ids[-1] == end


def test_the_seed_decides_what_is_sampled(toy_model):
    actions = [[s.action for e in play(toy_model, seed=seed)[0] for s in e.steps] for seed in (1, 1, 2)]
    assert actions[0] == actions[1] != actions[2]


def test_unreadable_replies_reach_the_world_as_they_are(toy_model):
    _, decisions = play(toy_model)
    for _, decision in decisions:
        assert decision.action == toy_model.decode(decision.tokens).strip().rpartition("\n")[2].strip()


def expert() -> Trajectory:
    actions = ["click [1]", "click [2]", "stop [done]"]
    steps = [Step(PAGES[i], a, PAGES[i + 1], f"Step {i}.", float(i == 2)) for i, a in enumerate(actions)]
    return Trajectory(0, GOAL, steps, "expert", terminated=True)


def test_an_encoded_expert_reads_like_the_rendered_chat(toy_model):
    trajectory = expert()
    tokens = encode_episode(toy_model, trajectory)
    last = trajectory.steps[-1]
    chat = toy_model.prompt_tokens(policy_messages(GOAL, trajectory.steps[:-1], last.observation))
    assert tokens.prompt_ids + tokens.completion_ids == chat + toy_model.reply_tokens(
        policy_reply("Step 2.", last.action)
    )
    replies = [run for mask, run in segments(tokens) if mask]
    assert replies == [toy_model.reply_tokens(policy_reply(s.thought, s.action)) for s in trajectory.steps]


def test_an_expert_replayed_by_a_policy_has_the_experts_tokens(toy_model, monkeypatch):
    """The rollout path and the expert path must agree token for token, or expert members would look foreign."""
    trajectory = expert()
    replies = iter([toy_model.reply_tokens(policy_reply(s.thought, s.action)) for s in trajectory.steps])

    def scripted(prompts, *rest):
        tokens = tuple(next(replies))
        return [type("Generated", (), {"tokens": tokens, "text": toy_model.decode(tokens), "logprobs": ()})]

    monkeypatch.setattr(toy_model, "generate", scripted)
    episode = rollout(LanguagePolicy(toy_model), Corridor(), TASKS[:1], 3)[0]
    assert [s.action for s in episode.steps] == [s.action for s in trajectory.steps]
    assert episode_tokens(episode) == encode_episode(toy_model, trajectory)


def test_steps_of_another_agent_become_prompt(toy_model):
    trajectory = expert()
    trajectory.steps = trajectory.steps[:1]
    LanguagePolicy(toy_model, temperature=1.0, max_new_tokens=3).act([trajectory], [PAGES[1]])
    tokens = episode_tokens(trajectory)
    assert tokens.prompt_ids == toy_model.prompt_tokens(policy_messages(GOAL, trajectory.steps, PAGES[1]))


def test_cloning_examples_put_loss_on_replies_only(toy_model):
    (example,) = episode_examples(toy_model, [expert(), Trajectory(1, GOAL)])
    kept = [token for token, mask in zip(example.input_ids, example.loss_mask, strict=True) if mask]
    assert kept == [t for s in expert().steps for t in toy_model.reply_tokens(policy_reply(s.thought, s.action))]


def test_episodes_without_tokens_are_refused(toy_model):
    with pytest.raises(ValueError, match="encode_episode"):
        episode_tokens(expert())
    with pytest.raises(ValueError, match="no steps"):
        encode_episode(toy_model, Trajectory(1, GOAL))
