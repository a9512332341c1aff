# %% [markdown]
# # The loop in miniature
#
# **You watch a web agent practise in dreams and then act on real pages.**
#
# You build, step by step: a real page in a real browser, a model of how
# pages change, a dream made of its predictions, and five learning updates
# from dreams and expert trajectories together. At the end you score on real
# pages.
#
# *Reading:* 30 to 40 minutes. *Running:* 2 to 4 minutes on 2 CPU cores; a GPU
# is not needed. *Needs:* a clone of the repository. The cell below installs
# what is missing, and does nothing where `make setup` has run.

# %%
import importlib.util
import site
import subprocess
import sys

if importlib.util.find_spec("dynaweb_lite") is None:
    for command in ("pip install -q -e ..", "dynaweb_lite setup-browser"):
        subprocess.run([sys.executable, "-m", *command.split()], check=True)
    site.addsitedir(site.getsitepackages()[0])

# %% [markdown]
# ## A real page
#
# The package brings small replicas of two of WebArena's sites: a shop and a
# forum. They listen on your own machine only. `RealWeb` opens them in
# Chromium and is a **world**: you reset it with tasks, you step it with
# actions. Every task gets a browser context and a site state of its own, so
# nothing that one agent buys shows in another's cart.

# %%
from IPython.display import Image

from dynaweb_lite.browser import RealWeb
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks

web = RealWeb(SiteServer(seed=0), contexts=8)
splits = ("expert", "train", "test")
tasks = {split: generate_tasks(0, split) for split in splits}
task = next(t for t in tasks["test"] if t.kind == "add_to_cart")

[page] = web.reset([task])
print("Goal:", task.intent)
Image(web.screenshot(0), width=640)

# %%
print(page.text)

# %% [markdown]
# That text is the **observation**: the page as an accessibility tree, what a
# screen reader reads out. The first line holds the tab's title and URL. Each
# further line is one **element**: an id in brackets, a role, a name. Ids run
# 1, 2, 3, … in document order, so the same page always reads the same. An
# agent sees this text and nothing else.
#
# ## An action
#
# An **action** is text too: `click [7]`, `type [3] [words] [1]`, `go_back`,
# `stop [answer]`. Two actions follow. The second names an element that does
# not exist. *Before you run it: should that raise an error?*

# %%
item = task.instantiation_dict["name"]
box = page.find("searchbox")
[step] = web.step([f"type [{box.id}] [{item}] [1]"])
print(step.observation.text, end="\n\n")

[step] = web.step(["click [99]"])
print("error:     ", step.observation.last_action_error)
print("reward:    ", step.reward)
print("terminated:", step.terminated, " truncated:", step.truncated)

# %% [markdown]
# The search opened a page of results. The impossible click is no exception:
# a policy that learns makes such mistakes, and must be told. The page stays
# and carries the reason. A step brings five things, as in Gymnasium:
# observation, reward, terminated, truncated, info. The reward is 0 until the
# agent says `stop`; then the task's own check decides between 0 and 1.
#
# ## Experts
#
# One line plays whole episodes: `rollout(policy, world, tasks, max_steps)`.
# You meet it again below, with another policy and another world. Here the
# policy is a script that knows the sites.

# %%
from dynaweb_lite.experts import ExpertPolicy
from dynaweb_lite.worlds import rollout

shown = tasks["expert"][:3]
expert = ExpertPolicy(tasks["expert"])
for episode in rollout(expert, web, shown, max_steps=8, source="expert"):
    print(f"\n{episode.goal}   reward {episode.reward:.0f}")
    for step in episode.steps:
        print(f"    {step.thought:<34} {step.action}")

# %% [markdown]
# Each step holds a short thought and an action. Such **expert trajectories**
# are good and dear: on a live site a person makes them. This repository uses
# three for each kind of task.
#
# ## Exploration
#
# Experts show what to do. They do not show what a page does when you do
# something else, and a model of the web must know that too. So a second
# policy walks at random and prefers what it has clicked least. A fifth of its
# actions are odd on purpose: empty searches, clicks on plain text.

# %%
from dynaweb_lite.explore import RandomExplorer, transitions_of

explorer = RandomExplorer(seed=123)
walks = rollout(explorer, web, tasks["train"][:8], 6, source="exploration")
for step in walks[0].steps:
    print(f"{step.action:<30} -> {step.next_observation.title}")

explored = transitions_of(walks)
distinct = {(t.observation, t.action) for t in explored}
print(f"\n{len(explored)} transitions, {len(distinct)} of them distinct")

# %% [markdown]
# A **transition** is a page, an action, and the page that followed. No reward,
# no goal, no person: transitions are cheap, and one walk serves all tasks.
# The repository ships more of them, recorded by this very code.

# %%
from dynaweb_lite.presets import ASSETS
from dynaweb_lite.trajectory import load_trajectories

recorded = transitions_of(load_trajectories(ASSETS / "explorations.jsonl"))
print(f"{len(recorded):,} recorded transitions")

# %% [markdown]
# ## A model of the web
#
# The **world model** is a language model. It reads a page and an action, and
# writes a reason and the **state change** Δ: which lines of the page stay
# (`= [1] [5]`), and which lines are new. Δ is shorter than the next page and
# is applied by rule. Look at one training example: the page it reads, and the
# reply it learns.

# %%
from dynaweb_lite.world_model import training_examples

moved = [t for t in explored if t.observation != t.next_observation]
[example] = training_examples(moved[:1])
print(example.messages[-1]["content"])
print("\n--- reply ---\n" + example.reply)

# %% [markdown]
# The shipped world model is a tiny decoder of about a million parameters
# with a LoRA **adapter**: small extra weights, learnt on the recorded
# transitions. The decoder itself never saw these two sites, only others with
# other goods and habits.
#
# It now predicts pages that the walks above have just met in the browser;
# some of these steps occur in its training data, others do not. *Predict:
# which share of the next pages does it get right to the letter? And a lazy
# model that says "nothing changes"?*

# %%
from dynaweb_lite.fidelity import fidelity
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.world_model import WorldModel

adapted = LanguageModel.load(ASSETS / "tiny-base", ASSETS / "world-model")
world_lm = adapted.merged()  # adapter folded into the weights: faster
world_model = WorldModel(world_lm)

measured = fidelity(world_model, explored)
lazy = measured["nothing_changes"]
print(f"{'':<22}world model   nothing changes")
for name in ("exact", "line_f1", "changed_f1"):
    print(f"{name:<22}{measured[name]:>11.2f}{lazy[name]:>18.2f}")

# %% [markdown]
# `exact` is the share of pages without a single wrong letter. `line_f1`
# compares all lines and flatters the lazy model, since most lines of a page
# stay. `changed_f1` looks only at lines that come or go: there laziness earns
# nothing, except where nothing happens. The world model should stand well
# above it in every row. The next notebook takes these measures apart.

# %%
last = moved[-1]
[prediction] = world_model.predict([(last.observation, last.action)])
print("action:", last.action, "on", last.observation.title, "\n")
print(prediction.reason)
print(prediction.change)
right = prediction.observation == last.next_observation
print("\nequals the real page:", right)

# %% [markdown]
# ## A dream
#
# Feed the model's own pages back to it and you have a world. `ImaginedWeb` has
# the same interface as `RealWeb`. A **judge** gives its rewards: the same
# model reads the last page, the goal and the answer, and says yes or no.
#
# The **policy** is the same decoder with another adapter, learnt by imitating
# the experts (SFT, supervised fine-tuning). It plays twice: once in pages that
# nobody served, once in Chromium. **The line is the same.**

# %%
from dynaweb_lite.imagined_web import ImaginedWeb
from dynaweb_lite.judge import SelfJudge
from dynaweb_lite.policy import LanguagePolicy

goals = tasks["train"][:8]
first_pages = web.reset(goals)
home = {g.site: p for g, p in zip(goals, first_pages, strict=True)}
dreams = ImaginedWeb(world_model, SelfJudge(world_lm), lambda t: home[t.site])
lm = LanguageModel.load(ASSETS / "tiny-base", ASSETS / "sft")

dreamt = rollout(LanguagePolicy(lm), dreams, goals, 6, source="dream")
real = rollout(LanguagePolicy(lm), web, goals, 6)

print("dream real  goal")
for a, b in zip(dreamt, real, strict=True):
    print(f"{a.reward:>5.0f} {b.reward:>4.0f}  {a.goal}")

# %%
from dynaweb_lite.replay import dream_agreement

for origin, episode in (("dreamt", dreamt[0]), ("real", real[0])):
    print(f"{origin}: {episode.goal}")
    for step in episode.steps:
        print(f"    {step.action:<30} -> {step.next_observation.title}")

by_id = {t.task_id: t for split in splits for t in tasks[split]}
agreement = dream_agreement(dreamt, by_id, web)
print("\nthe dreams' actions, done again in Chromium:")
for name in ("agreement", "page_agreement", "false_reward"):
    print(f"    {name:<16}{agreement[name]:.2f}")
print(world_model.counts)

# %% [markdown]
# `agreement` is the share of dreams that earn the same reward when their
# actions are done on real pages, `page_agreement` the share of steps that show
# the same page. `false_reward` is the one to fear: dreams rewarded without
# desert. A policy in training finds such holes and walks through them.
#
# Dreams are cheap. The model answers equal questions once (`cache_hits`),
# needs no server, and no click can buy anything.
#
# ## What an update learns from
#
# Play one goal four times, at temperature 1, so that the attempts differ.

# %%
sampler = LanguagePolicy(lm, temperature=1.0, seed=0)
goals = tasks["train"][:24]
tries = rollout(sampler, dreams, [g for g in goals for _ in range(4)], 6)
groups = [tries[i : i + 4] for i in range(0, len(tries), 4)]
mixed = [g for g in groups if len({e.reward for e in g}) == 2]
print(f"{len(mixed)} of {len(groups)} goals: both successes and failures")

group = mixed[0]
print("\n" + group[0].goal)
for episode in group:
    actions = ", ".join(step.action for step in episode.steps)
    print(f"    reward {episode.reward:.0f}   {actions}")

# %% [markdown]
# The **advantage** of an attempt says how much better it went than its
# **group**, the attempts at the same goal:
#
# $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + 10^{-4}}$$
#
# No second network has to guess what a goal is worth. *Predict: what are the
# four advantages for the rewards 1, 0, 0, 1? And for 0, 0, 0, 0?*

# %%
from statistics import mean, stdev

from dynaweb_lite.groups import group_advantages


def advantages(rewards):
    """Rewards of a group [G] -> advantages [G]."""
    centre, spread = mean(rewards), stdev(rewards)
    return [(r - centre) / (spread + 1e-4) for r in rewards]


rewards = [episode.reward for episode in group]
for case in ([1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1], rewards):
    ours = advantages(case)
    assert abs(sum(ours)) < 1e-9
    package = group_advantages(case)
    assert all(abs(a - b) < 1e-9 for a, b in zip(ours, package, strict=True))
    print(case, "->", [round(a, 2) for a in ours])

# %% [markdown]
# Advantages of a group sum to zero: what succeeds is pushed up, what fails is
# pushed down. A group of equal rewards is all zeros and teaches nothing.
#
# Compare the second case with the third. A goal that the policy never reaches
# is lost to it, until one attempt is replaced by a **real expert trajectory**
# with reward 1. That is the paper's interleaving: dreams to practise what you
# almost can, experts for what you cannot find alone.

# %% [markdown]
# ## From advantages to a loss
#
# An episode is one long token sequence: page, reply, page, reply. Only the
# **own tokens**, those of the replies, carry loss. How likely did the policy
# find them? Read it off the model's own softmax, and compare with the package.

# %%
import torch

from dynaweb_lite.gspo import token_logprobs
from dynaweb_lite.policy import episode_tokens

for episode in group:
    prompt, completion, mask = episode_tokens(episode)
    ids, own = torch.tensor([prompt + completion]), torch.tensor([mask])
    with torch.no_grad():
        table = lm.model(ids).logits[:, :-1].log_softmax(-1)
        package, _ = token_logprobs(lm.model, ids, ids >= 0, own)
    ours = table.gather(2, ids[:, 1:, None])[:, -len(mask) :, 0] * own
    assert torch.allclose(ours, package, atol=1e-4)
    mean_logp = ours.sum() / own.sum()
    print(f"{own.sum()} own tokens of {ids.numel()}: mean {mean_logp:.2f}")

# %% [markdown]
# GSPO compares that mean with the one of the policy that played: the ratio is
# $s = \exp(\mathrm{mean}_{new} - \mathrm{mean}_{old})$, and the loss of an
# episode is $-\min(s A,\; \mathrm{clip}(s) A)$. Before the first update the
# two policies are one, so $s = 1$. *Predict: what is the loss of the group
# 1, 0, 0, 1 then? Is there anything to learn from it?*

# %%
A = torch.tensor(advantages([1, 0, 0, 1]))
s = torch.ones(4, requires_grad=True)  # before the update: same policy

clipped = s.clamp(1 - 3e-4, 1 + 4e-4)
loss = -torch.minimum(s * A, clipped * A).mean()
loss.backward()
print(f"loss      {abs(loss.item()):.4f}")
print("gradient ", [round(g, 3) for g in s.grad.tolist()])

# %% [markdown]
# The loss is zero and the gradient is not. So a loss curve of this kind of
# learning says little: watch rewards instead. A negative gradient means that
# raising the ratio lowers the loss, and the two successful episodes become
# more likely.
#
# ## Five updates in dreams
#
# Now the package does the same: it draws goals, dreams groups of eight, puts
# experts in place of some members, and makes one LoRA update a round.
# Underneath runs TRL's `GRPOTrainer`. An audit replays the dreams in
# `DirectWeb`: the same sites without a browser. *This cell takes up to a
# minute.*

# %%
import tempfile

from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.rl import RLSettings, train_gspo

experts = {}
for trajectory in load_trajectories(ASSETS / "experts.jsonl"):
    experts.setdefault(trajectory.task_id, []).append(trajectory)
settings = RLSettings(
    updates=5, groups_per_update=4, max_dream_steps=6, eval_every=1
)
practised = tasks["expert"] + tasks["train"]
work = tempfile.TemporaryDirectory()
rows = []


def audit(episodes):
    return dream_agreement(episodes, by_id, DirectWeb(web.server))


learn = {"on_update": rows.append, "audit": audit}
lm = train_gspo(lm, practised, dreams, experts, work.name, settings, **learn)

# %%
names = ("update", "reward", "agreement", "spread_share", "expert_share")
print("".join(f"{name:>14}" for name in names))
for row in rows:
    print("".join(f"{row[name]:>14.3g}" for name in names))

# %% [markdown]
# `spread_share` is the share of groups whose rewards differ, `expert_share`
# that of expert members. Five updates show that the loop turns, not that it
# learns: the rewards of so few dreams jump about.
#
# The repository ships an adapter that was trained in this way for longer, and
# chosen on validation tasks. Score it on real pages, beside the imitation
# that it started from. One test task of each kind, none of them seen before.

# %%
from dynaweb_lite.score import score, success

sample = list({t.kind: t for t in reversed(tasks["test"])}.values())
played = {}
for method in ("sft", "dynaweb"):
    trained = LanguageModel.load(ASSETS / "tiny-base", ASSETS / method)
    policy = LanguagePolicy(trained)
    played[method] = score(policy, web, sample, 8, batch=8, label=method)
    print(f"{method:<9} {success(played[method])}")

print("\n  sft  dynaweb")
for a, b in zip(played["sft"], played["dynaweb"], strict=True):
    print(f"{a.success:>5}{b.success:>9}  {a.site}/{a.kind}")

# %% [markdown]
# Look at the brackets, the 95 % interval: with a dozen tasks it spans a third
# of the scale or more, and proves nothing. Comparing two policies takes
# hundreds of tasks and several seeds.
#
# ## The measured result
#
# `make full` played all test tasks in Chromium with several seeds. The cell
# reads its file. SFT had exactly the expert trajectories that DynaWeb could
# interleave. These are scores on replicas, not on WebArena.

# %%
import json
from pathlib import Path

from dynaweb_lite.plots import results_bars, save
from dynaweb_lite.score import format_table

file = ASSETS / "results" / "quickstart.json"
study = json.loads(file.read_text(encoding="utf-8"))
print("measured", study["made"]["date"], "on", study["made"]["device"])
print(format_table(study["rows"]))

# %%
methods = [
    row
    for row in study["rows"]
    if row["tasks"] == "all" and " - " not in row["method"]
]
best = max(methods, key=lambda row: row["success"])
title = f"{best['method']} solves most: {best['success']:.0%} of the tasks"
picture = Path(work.name) / "results.png"
save(results_bars(methods, title), picture)
Image(str(picture), width=640)

# %% [markdown]
# The row *dynaweb - sft* is the one to read: its interval is **paired**, the
# same tasks and seeds on both sides. Where it lies above zero, practice in
# dreams beat imitation of the same experts.

# %% [markdown]
# ## What you saw
#
# - a page as 10 to 20 lines of text, an action as one, an error as data;
# - one line of code, `rollout`, in Chromium and in a dream;
# - a model of a million parameters that knows what a click does far better
#   than "nothing changes";
# - advantages that sum to zero, a loss of zero with a gradient.
#
# **Next:** `02_imagined_beside_real` looks closely at single pages: where a
# dream is right, and where it parts from the web.

# %%
web.close()
web.server.close()
work.cleanup()
