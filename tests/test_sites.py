"""The replicas: seeded, reset in an instant, each session its own; tasks that experts solve and idlers do not."""

import socket
from collections import Counter
from dataclasses import replace

import pytest
from werkzeug.test import Client

from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.experts import ExpertPolicy
from dynaweb_lite.replay import ReplayPolicy, dream_agreement
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.server import SESSION_COOKIE
from dynaweb_lite.sites.task_generator import EXPERTS_PER_KIND, KINDS, generate_tasks
from dynaweb_lite.worlds import Decision, rollout


class Stopper:
    """Stops at once with an answer."""

    def __init__(self, answer: str):
        self.answer = answer

    def act(self, episodes, observations):
        return [Decision(f"stop [{self.answer}]") for _ in episodes]


def get(client, url, session="a"):
    client.set_cookie(SESSION_COOKIE, session, domain="shop.test")
    return client.get(url, base_url="http://shop.test")


def test_sessions_do_not_see_each_other_and_reset_restores_the_seeded_state():
    server = SiteServer(0)
    client = Client(server.app)
    for session in ("a", "b"):
        assert "You have no items" in get(client, "/checkout/cart/", session).text
    client.set_cookie(SESSION_COOKIE, "a", domain="shop.test")
    client.post("/checkout/cart/add/1", base_url="http://shop.test")
    assert "You have no items" not in get(client, "/checkout/cart/", "a").text
    assert "You have no items" in get(client, "/checkout/cart/", "b").text
    server.reset("a")
    assert "You have no items" in get(client, "/checkout/cart/", "a").text


def test_content_is_a_function_of_the_seed():
    home = {seed: get(Client(SiteServer(seed).app), "/").text for seed in (0, 1)}
    assert home[0] == get(Client(SiteServer(0).app), "/").text != home[1]


def test_errors_are_pages():
    client = Client(SiteServer(0).app)
    for url in ("/nothing", "/nothing.html", "/sales/order/view/order_id/1/", "/checkout/added/999/"):
        response = get(client, url)
        assert response.status_code == 404 and "Not Found" in response.text
    assert client.get("/", base_url="http://elsewhere.test").status_code == 404


def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=str(port)):
            SiteServer(port=port).start()


@pytest.mark.parametrize("seed", [0, 3])
def test_experts_solve_every_task_and_idlers_none(seed):
    tasks, web = generate_tasks(seed), DirectWeb(SiteServer(seed))
    solved = rollout(ExpertPolicy(tasks), web, tasks, 8)
    assert [e.goal for e in solved if e.reward < 1] == []
    for answer in ("", "42 bananas"):
        idle = rollout(Stopper(answer), web, tasks, 8)
        assert [e.goal for e in idle if e.reward > 0] == []


def test_doing_it_to_the_wrong_thing_scores_nothing():
    tasks, web = generate_tasks(0), DirectWeb(SiteServer(0))
    for kind in KINDS:
        first, second = [t for t in tasks if t.kind == kind][:2]
        expert = ExpertPolicy([replace(second, task_id=first.task_id)], search_every=0)
        episode = rollout(expert, web, [first], 8)[0]
        same_answer = second.eval["reference_answers"] == first.eval["reference_answers"] is not None
        assert episode.terminated and episode.reward == float(same_answer), kind


def test_splits_are_disjoint_and_hold_every_kind():
    tasks = {split: generate_tasks(0, split) for split in ("expert", "train", "validation", "test")}
    ids = [t.task_id for part in tasks.values() for t in part]
    assert len(ids) == len(set(ids)) and len(tasks["test"]) >= 200
    for split, part in tasks.items():
        assert {t.kind for t in part} == set(KINDS), split
    assert set(Counter(t.kind for t in tasks["expert"]).values()) == {EXPERTS_PER_KIND}
    with pytest.raises(ValueError, match="unknown split"):
        generate_tasks(0, "exam")


def test_experts_take_mixed_routes():
    tasks = [t for t in generate_tasks(0) if t.kind not in ("order_status", "subscribe")]
    episodes = rollout(ExpertPolicy(tasks), DirectWeb(SiteServer(0)), tasks, 8)
    searched = sum(any(s.action.startswith("type") and s.thought == "Search." for s in e.steps) for e in episodes)
    assert 0.2 < searched / len(episodes) < 0.4


def test_dreams_held_against_the_truth():
    tasks, web = generate_tasks(0, "expert"), DirectWeb(SiteServer(0))
    by_id = {t.task_id: t for t in tasks}
    true = rollout(ExpertPolicy(tasks), web, tasks, 8)
    assert dream_agreement(true, by_id, web) == {
        "agreement": 1.0, "page_agreement": 1.0, "true_reward": 1.0, "false_reward": 0.0
    }  # fmt: skip
    lies = rollout(Stopper("42 bananas"), web, tasks, 8)
    for episode in lies:
        episode.steps[-1] = replace(episode.steps[-1], reward=1.0)
    found = dream_agreement(lies, by_id, web)
    assert found["agreement"] == 0.0 and found["false_reward"] == 1.0 and found["true_reward"] == 0.0
    assert [e.reward for e in rollout(ReplayPolicy(true), web, tasks, 8)] == [1.0] * len(tasks)
