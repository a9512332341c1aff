"""The judge of free answers, against a local server that plays a chat endpoint."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from dynaweb_lite.answer_judge import AnswerJudge, Question, configured_judge, read_verdict
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.endpoint import Endpoint as Asker
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.score import format_table, outcomes, results_rows, score, success
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.tasks import Task, TaskError
from dynaweb_lite.worlds import Decision

SECRET, KEY = "sk-kept-to-itself", "JUDGE_TEST_KEY"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY, SECRET)


class Endpoint:
    """Answers each request with the next of its replies: a text, a status, or raw bytes; keeps what it was sent."""

    def __init__(self, *replies):
        self.replies, self.requests = list(replies), []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append((self.path, self.headers.get("Authorization"), body))
                reply = endpoint.replies.pop(0) if len(endpoint.replies) > 1 else endpoint.replies[0]
                status = reply if isinstance(reply, int) else 200
                is_raw = isinstance(reply, bytes)
                sent = reply if is_raw else json.dumps({"choices": [{"message": {"content": reply}}]}).encode()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def judge_at(url, **options):
    return AnswerJudge(Asker(url, "small-judge", KEY, timeout_seconds=5, pause_seconds=0.01, **options))


ASKED = Question("When does it open?", "at noon", "12 o'clock")


def test_the_endpoint_is_asked_as_openai_compatible_ones_are():
    with Endpoint("Both mean midday.\ncorrect") as endpoint:
        assert judge_at(endpoint.url)(ASKED) is True
        assert judge_at(endpoint.url + "/chat/completions/")(ASKED) is True
        assert AnswerJudge(Asker(endpoint.url + "/", "m"))(ASKED) is True
    (path, key, body), (other_path, _, _), (_, no_key, _) = endpoint.requests
    assert path == other_path == "/v1/chat/completions" and key == f"Bearer {SECRET}" and no_key is None
    assert (body["model"], body["temperature"]) == ("small-judge", 0)
    prompt = body["messages"][-1]["content"]
    assert all(part in prompt for part in ("When does it open?", "at noon", "12 o'clock", "partially correct"))


@pytest.mark.parametrize(
    ("reply", "about", "verdict"),
    [
        ("correct", "answer", True),
        ("I looked for anything incorrect and found nothing.\n\n**Correct.**\n", "answer", True),
        ("The time is correct, the day is not.\nincorrect", "answer", False),
        ("partially correct", "answer", False),
        ("Verdict: correct", "answer", True),
        ("Final verdict: INCORRECT", "answer", False),
        ("The answer is correct", "answer", None),
        ("correct or incorrect", "answer", None),
        ("not correct", "answer", None),
        ("same", "answer", None),
        ("correct\nor so", "answer", None),
        ("", "answer", None),
        ("Both say that it is sold out, in no different words.\nsame", "reason", True),
        ("different", "reason", False),
        ("correct", "reason", None),
    ],
)
def test_the_verdict_is_the_word_on_the_last_line(reply, about, verdict):
    assert read_verdict(reply, about) is verdict


def test_a_strict_question_is_read_as_webarena_reads_it():
    with Endpoint("It is not incorrect.\ncorrect") as endpoint:
        assert judge_at(endpoint.url)(ASKED) is True
        assert judge_at(endpoint.url)(Question("w", "r", "a", strict=True)) is False
    with Endpoint("The same reason") as endpoint:
        assert judge_at(endpoint.url)(Question("w", "r", "a", "reason", strict=True)) is True
        with pytest.raises(NotScorable, match="no verdict"):
            judge_at(endpoint.url)(Question("w", "r", "a", "reason"))


def test_what_passes_is_tried_again():
    with Endpoint(503, 429, "correct") as endpoint:
        assert judge_at(endpoint.url)(ASKED) is True
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("reply", "said", "count"),
    [
        (401, "status 401", 1),
        (500, "status 500", 3),
        (b"<html>", "another form", 3),
        (b'{"choices": []}', "another form", 3),
        (b'{"choices": [{"message": {"content": null}}]}', "another form", 3),
        ("I cannot say", "no verdict: 'I cannot say'", 1),
    ],
)
def test_without_a_verdict_the_task_is_not_scorable(reply, said, count):
    with Endpoint(reply) as endpoint, pytest.raises(NotScorable, match=said) as caught:
        judge_at(endpoint.url, tries=3)(ASKED)
    assert SECRET not in str(caught.value) and len(endpoint.requests) == count


def test_an_endpoint_that_is_not_there_is_named_and_the_key_is_not():
    with Endpoint("x") as endpoint:
        pass
    with pytest.raises(NotScorable, match="127.0.0.1") as caught:
        judge_at(endpoint.url, tries=2)(ASKED)
    assert SECRET not in str(caught.value) and SECRET not in repr(judge_at(endpoint.url))


def test_the_environment_names_the_judge(monkeypatch):
    for name in ("URL", "MODEL", "KEY"):
        monkeypatch.delenv(f"DYNAWEB_JUDGE_{name}", raising=False)
    assert configured_judge() is None
    monkeypatch.setenv("DYNAWEB_JUDGE_URL", "localhost:8000")
    with pytest.raises(TaskError, match="DYNAWEB_JUDGE_MODEL is not"):
        configured_judge()
    monkeypatch.setenv("DYNAWEB_JUDGE_MODEL", "m")
    with pytest.raises(TaskError, match="no address"):
        configured_judge()
    monkeypatch.setenv("DYNAWEB_JUDGE_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("DYNAWEB_JUDGE_KEY", SECRET)
    endpoint = configured_judge().endpoint
    assert (endpoint.url, endpoint.model) == ("http://localhost:8000/v1", "m") and endpoint._key == SECRET


class Says:
    def act(self, episodes, observations):
        return [Decision("stop [at midday]") for _ in episodes]


def tasks():
    noon = {"eval_types": ["string_match"], "program_html": [], "reference_url": ""}
    rows = [{"fuzzy_match": ["at noon"]}, {"exact_match": "at midday"}, {"exact_match": "never"}]
    return [
        Task(i, ("shopping",), "__SHOPPING__", "When?", noon | {"reference_answers": row}, kind="ask")
        for i, row in enumerate(rows)
    ]


class Counting(DirectWeb):
    begun = 0

    def reset(self, tasks, starts=None):
        self.begun += len(tasks)
        return super().reset(tasks, starts)


def test_what_needs_a_judge_is_left_out_of_n_until_there_is_one(tmp_path):
    path, world = tmp_path / "scores.jsonl", Counting(SiteServer())
    results = score(Says(), world, tasks(), 2, 3, path)
    assert world.begun == 2 and [r.success for r in results] == [0, 1, 0]
    assert "DYNAWEB_JUDGE_URL" in results[0].not_scorable and not any(r.error for r in results)
    assert (success(results).n, success(results).value) == (2, 0.5) and outcomes(results) == {1: 1, 2: 0}
    rows = results_rows("a", {0: results}, "test")
    assert (rows[0]["n"], rows[0]["evaluator"], rows[0]["not_scorable"]) == (2, "right", 1)
    lines = format_table(rows).split("\n")
    assert "| evaluator | not scorable |" in lines[0] and "| right     | 1            |" in lines[2]
    only = results_rows("a", {0: results[:1]}, "test")
    assert only[0]["n"] == 0 and "none scored" in format_table(only)
    with Endpoint("correct") as endpoint:
        judged = Counting(SiteServer(), strict="webarena", judge=judge_at(endpoint.url))
        results = score(Says(), judged, tasks(), 2, 3, path)
        assert score(Says(), judged, tasks(), 2, 3, path) == results
    assert judged.begun == 3  # what the other evaluator said counts no longer
    assert [(r.success, r.evaluator) for r in results] == [(1, "webarena"), (1, "webarena"), (0, "webarena")]
    row = results_rows("a", {0: results}, "test")[0]
    assert (row["n"], row["evaluator"], row["not_scorable"]) == (3, "webarena", 0)


def test_an_unreadable_verdict_is_not_scorable_and_is_not_played_again_as_a_breakdown(tmp_path):
    with Endpoint("who knows") as endpoint:
        world = Counting(SiteServer(), judge=judge_at(endpoint.url))
        results = score(Says(), world, tasks()[:1], 2, 3, tmp_path / "s.jsonl")
    assert world.begun == 1 and "who knows" in results[0].not_scorable and results[0].error == ""
    assert success(results).n == 0
