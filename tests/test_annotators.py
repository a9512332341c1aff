"""Reasons and changes by rule and by language models: a real endpoint that fails, lags and talks nonsense."""

import _thread
import json
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from dynaweb_lite.annotators import (
    EndpointAnnotator,
    Malformed,
    ModelAnnotator,
    RuleAnnotator,
    annotate,
    annotation_messages,
    read_annotation,
    transition_key,
)
from dynaweb_lite.change_forms import DESCRIBED, EDIT_SCRIPT, Annotation
from dynaweb_lite.endpoint import Endpoint, EndpointError, Failure, Reply, Spent, _retry_after
from dynaweb_lite.observation import Element, Observation, number
from dynaweb_lite.prompts import user
from dynaweb_lite.state_change import diff
from dynaweb_lite.trajectory import Transition
from dynaweb_lite.world_model import training_examples

KEY = "sk-only-in-the-environment"


class ChatServer:
    """An endpoint on loopback. `answer(n, body)` is called with the number of the request, from 1.

    It returns a text to reply with, or (status, headers, body) to send as they are; a list of bytes drips.
    """

    def __init__(self):
        self.bodies, self.authorizations, self.answer = [], [], lambda n, body: "hello"
        self.now = self.most = 0
        lock, chat = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    chat.bodies.append(body)
                    chat.authorizations.append(self.headers.get("Authorization"))
                    n = len(chat.bodies)
                    chat.now += 1
                    chat.most = max(chat.most, chat.now)
                try:
                    said = chat.answer(n, body)
                    self.send(*said) if isinstance(said, tuple) else self.send(200, {}, completion(said))
                finally:
                    with lock:
                        chat.now -= 1

            def send(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for part in body if isinstance(body, list) else [body]:
                        self.wfile.write(part)
                        self.wfile.flush()
                        time.sleep(0.1 if isinstance(body, list) else 0)
                except OSError:
                    pass  # the client went away, as it should

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


def completion(text, finish="stop", usage=(10, 3), **choice):
    body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish, **choice}]}
    if usage:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return json.dumps(body).encode()


@pytest.fixture
def server():
    chat = ChatServer()
    yield chat
    chat.server.shutdown()
    chat.server.server_close()


def endpoint(server, **settings):
    return Endpoint(server.url, "toy", **{"pause_seconds": 0.01, "timeout_seconds": 5.0, **settings})


def test_every_chat_has_its_answer_in_its_place(server, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)

    def answer(n, body):
        time.sleep(0.05 if body["messages"][0]["content"] == "0" else 0)
        return f"reply to {body['messages'][0]['content']}"

    server.answer = answer
    asked = endpoint(server, key_variable="TOY_KEY", spent=Spent(2.0, 10.0), extra={"reasoning_effort": "low"})
    replies = asked.chat([[user(str(i))] for i in range(6)], temperature=0.7, top_p=0.9, max_tokens=50)
    assert [reply.text for reply in replies] == [f"reply to {i}" for i in range(6)]
    assert server.bodies[0] | {"messages": []} == {
        "model": "toy",
        "messages": [],
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 50,
        "reasoning_effort": "low",
    }
    assert set(server.authorizations) == {f"Bearer {KEY}"}
    spent = asked.spent
    assert (spent.requests, spent.replies, spent.retries, spent.failures) == (6, 6, 0, 0)
    assert (spent.prompt_tokens, spent.completion_tokens) == (60, 18)
    assert spent.cost == pytest.approx((60 * 2 + 18 * 10) / 1e6) and "$0.0003" in str(spent)
    assert KEY not in repr(asked) and KEY not in str(vars(asked))


def test_no_key_no_header_and_no_more_than_so_many_at_once(server):
    server.answer = lambda n, body: time.sleep(0.05) or "late"
    asked = endpoint(server, parallel=3)
    assert all(isinstance(reply, Reply) for reply in asked.chat([[user("x")]] * 9))
    assert server.authorizations == [None] * 9 and 2 <= server.most <= 3


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(server, status):
    server.answer = lambda n, body: (status, {}, b"busy") if n < 3 else "at last"
    asked = endpoint(server)
    began = time.monotonic()
    assert asked.chat([[user("x")]]) == [Reply("at last")]
    assert time.monotonic() - began >= 0.01 + 0.02
    assert (asked.spent.requests, asked.spent.retries, asked.spent.failures) == (3, 2, 0)


def test_what_will_not_pass_is_asked_once_and_says_why_without_the_key(server, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)
    server.answer = lambda n, body: (400, {}, f"{KEY}: the prompt\nis too long".encode())
    asked = endpoint(server, key_variable="TOY_KEY")
    assert asked.chat([[user("x")]]) == [Failure("status 400", 1, "…: the prompt is too long")]
    assert (asked.spent.requests, asked.spent.failures, asked.spent.replies) == (1, 1, 0)


def test_retry_after_holds_for_every_request_through_the_endpoint(server):
    server.answer = lambda n, body: (429, {"Retry-After": "0.6"}, b"") if n == 1 else "ok"
    asked, began, first = endpoint(server), time.monotonic(), []
    other = threading.Thread(target=lambda: first.extend(asked.chat([[user("a")]])))
    other.start()
    time.sleep(0.2)  # by now the first request has been told to wait
    assert asked.chat([[user("b")]]) == [Reply("ok")]
    assert time.monotonic() - began >= 0.6
    other.join()
    assert first == [Reply("ok")] and asked.spent.requests == 3


def test_a_long_retry_after_is_not_waited_for(server):
    server.answer = lambda n, body: (429, {"Retry-After": "3600"}, b"")
    asked = endpoint(server)
    assert asked.chat([[user("x")]]) == [Failure("status 429, which asks to wait 3600 seconds", 1)]


def test_retry_after_is_read_as_seconds_and_as_a_date():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < _retry_after({"Retry-After": soon}) <= 30
    assert [_retry_after({"Retry-After": text}) for text in ("7", "-1", "whenever", "")] == [7, 0, 0, 0]


def test_requests_are_spread_over_the_minute(server):
    asked, began = endpoint(server, requests_per_minute=1200, parallel=6), time.monotonic()
    asked.chat([[user("x")]] * 6)
    assert time.monotonic() - began >= 5 * 60 / 1200


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        completion(None),
        completion(["text"]),
        b'{"choices": [{"message": {"content": "x"}}], "usage": "lots"}',
        b'{"choices": [{"message": {"content": "x"}, "logprobs": {"content": [1]}}]}',
    ],
)
def test_an_answer_in_another_form_is_a_failure(server, body):
    server.answer = lambda n, _: (200, {}, body)
    asked = endpoint(server, tries=2)
    assert asked.chat([[user("x")]]) == [Failure("an answer in another form than a chat completion", 2)]
    assert (asked.spent.requests, asked.spent.retries, asked.spent.replies) == (2, 1, 0)


def test_a_slow_server_and_one_that_drips_time_out(server):
    server.answer = lambda n, body: time.sleep(0.6) or "late"
    asked = endpoint(server, timeout_seconds=0.2, tries=1)
    assert asked.chat([[user("x")]]) == [Failure("timed out", 1)]
    server.answer = lambda n, body: (200, {}, [b"x"] * 30)
    began = time.monotonic()
    assert asked.chat([[user("x")]]) == [Failure("timed out", 1)]
    assert time.monotonic() - began < 2


def test_a_server_that_is_not_there(server):
    gone = ChatServer()
    gone.server.shutdown()
    gone.server.server_close()
    [failure] = endpoint(gone, tries=2).chat([[user("x")]])
    assert "refused" in failure.why and failure.tries == 2


def test_a_redirect_is_not_followed_with_the_key(server, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)
    elsewhere = ChatServer()
    server.answer = lambda n, body: (302, {"Location": elsewhere.url + "/chat/completions"}, b"")
    assert endpoint(server, key_variable="TOY_KEY").chat([[user("x")]]) == [Failure("status 302", 1)]
    assert elsewhere.bodies == []
    elsewhere.server.shutdown()
    elsewhere.server.server_close()


def test_logprobs_cut_off_replies_and_replies_without_a_count(server):
    tokens = {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1}]}
    server.answer = lambda n, body: (200, {}, completion("ab", "length", usage=None, logprobs=tokens))
    asked = endpoint(server)
    assert asked.chat([[user("x")]], logprobs=True) == [Reply("ab", True, (-0.5, -1.0))]
    assert server.bodies[0]["logprobs"] is True and "max_tokens" not in server.bodies[0]
    assert asked.spent.unmetered == 1 and "without a count" in str(asked.spent)


def test_chats_are_made_only_when_their_turn_comes(server):
    made = []
    stream = endpoint(server, parallel=2).stream([user(str(i))] for i in range(50) if not made.append(i))
    next(stream)
    stream.close()
    assert len(made) <= 4


def test_an_endpoint_is_named_by_the_environment(monkeypatch):
    assert Endpoint.from_environment("DYNAWEB_TOY") is None
    monkeypatch.setenv("DYNAWEB_TOY_URL", "http://localhost:1/v1/")
    with pytest.raises(EndpointError, match="DYNAWEB_TOY_MODEL is not"):
        Endpoint.from_environment("DYNAWEB_TOY")
    monkeypatch.setenv("DYNAWEB_TOY_MODEL", "big")
    asked = Endpoint.from_environment("DYNAWEB_TOY", parallel=7)
    assert (asked.model, asked.key_variable, asked.parallel) == ("big", "DYNAWEB_TOY_KEY", 7)
    for wrong in ({"url": "localhost"}, {"model": ""}, {"tries": 0}, {"parallel": 0}, {"timeout_seconds": 0}):
        with pytest.raises(EndpointError):
            Endpoint(**{"url": "http://a", "model": "b", **wrong})


# Annotations


def page(*lines, title="Shop", url="http://shop.test/"):
    return Observation(title, url, number([Element(0, *line) for line in lines]))


LIST = page(("link", "Red mug"), ("link", "Blue mug"), ("button", "Help"))
MUG = page(("heading", "Red mug"), ("StaticText", "$12.50"), title="Red mug", url="http://shop.test/red-mug")
OPENS = Transition(LIST, "click [1]", MUG)
STAYS = Transition(LIST, "click [3]", LIST.with_error("nothing happened"))
BACK = Transition(MUG, "go_back", LIST)
WORDS = "heading 'Red mug' and '$12.50' in place of both links"
GOOD = f"Reason: The link leads to the mug.\nChange:\n{WORDS}"


def well(n, body):
    """A good annotation of whichever transition is asked about."""
    return "Reason: It is a help button.\nChange: none" if "click [3]" in body["messages"][1]["content"] else GOOD


def test_rules_annotate_where_no_model_is_given(tmp_path, capsys):
    transitions = [OPENS, STAYS, BACK, OPENS]
    for form in (DESCRIBED, EDIT_SCRIPT):
        annotations = annotate(transitions, RuleAnnotator(form), tmp_path / "rule.jsonl")
        assert len(annotations) == 3 and annotations.get(OPENS).reason == "Opens Red mug."
        assert training_examples(transitions, form=form, annotate=annotations.get) == training_examples(
            transitions, form=form
        )
    assert "3 of 3 transitions annotated by rule, edit script" in capsys.readouterr().out
    assert annotate(transitions, RuleAnnotator(EDIT_SCRIPT), tmp_path / "rule.jsonl").reused == 3


def test_the_model_is_shown_both_pages_and_the_action():
    system, request = annotation_messages(OPENS)
    assert system["role"] == "system" and "click [1] link 'Red mug'" in request["content"]
    assert LIST.text in request["content"] and MUG.text in request["content"]
    assert "(error" not in annotation_messages(STAYS)[1]["content"]
    odd = Transition(page(("link", "{after} {0}")), "hum", MUG)
    assert "{after} {0}" in annotation_messages(odd)[1]["content"] and "hum" in annotation_messages(odd)[1]["content"]


def test_a_transition_is_known_by_what_is_shown():
    assert transition_key(STAYS) == transition_key(Transition(LIST, "click('3')", LIST))
    assert len({transition_key(t) for t in (OPENS, STAYS, BACK, Transition(LIST, "click [2]", MUG))}) == 4


@pytest.mark.parametrize(
    ("reply", "transition", "read"),
    [
        (
            GOOD,
            OPENS,
            Annotation("The link leads to the mug.", WORDS),
        ),
        ("<think>Reason: no\nChange: no</think>\nReason: r\nChange:\n\n a \nb\n", OPENS, Annotation("r", "a\nb")),
        ("**Reason:** r\n\n**Change:** None.", STAYS, Annotation("r", "")),
        ("Reason: two\nlines\nChange:", STAYS, Annotation("two lines", "")),
        ("Reason: r\nChange: none", OPENS, "says that nothing changes"),
        ("Reason: r\nChange: all", STAYS, "names a change where there is none"),
        ("Reason: r", OPENS, "not in the form"),
        ("Reason:\nChange: all", OPENS, "not in the form"),
        ("Sure! Reason: r\nChange: all", OPENS, "not in the form"),
        ("", OPENS, "not in the form"),
    ],
)
def test_replies_are_read_or_said_to_be_malformed(reply, transition, read):
    found = read_annotation(reply, transition)
    if isinstance(read, Annotation):
        assert found == read and isinstance(read_annotation(reply, transition, cut_off=True), Malformed)
    else:
        assert isinstance(found, Malformed) and read in found.why and found.reply == reply


def test_a_models_annotations_are_what_the_world_model_learns(server, tmp_path, capsys):
    server.answer = well
    annotator = EndpointAnnotator(endpoint(server, spent=Spent(1.0, 1.0)))
    annotations = annotate([OPENS, STAYS, OPENS], annotator, tmp_path / "a.jsonl")
    examples = training_examples([OPENS, STAYS], form=DESCRIBED, annotate=annotations.get)
    assert [example.reply for example in examples][::2] == [
        f"The link leads to the mug.\n{WORDS}",
        "It is a help button.",
    ]
    assert len(server.bodies) == 2 and server.bodies[0]["temperature"] == 0
    out = capsys.readouterr().out
    assert "2 of 2 transitions annotated by toy" in out and "2 requests" in out and "$0.0000" in out
    again = annotate([OPENS, STAYS], annotator, tmp_path / "a.jsonl")
    assert again.found == annotations.found and (again.asked, again.reused) == (0, 2) and len(server.bodies) == 2


def test_an_edit_script_takes_the_models_reason_and_the_exact_change(server):
    server.answer = well
    annotations = annotate([OPENS], EndpointAnnotator(endpoint(server), EDIT_SCRIPT))
    assert annotations.get(OPENS) == Annotation("The link leads to the mug.", diff(LIST, MUG))


def test_failures_are_asked_again_and_malformed_replies_left_out(server, tmp_path, capsys):
    def answer(n, body):
        request = body["messages"][1]["content"]
        return (400, {}, b"no") if "go_back" in request else "I cannot" if "click [3]" in request else GOOD

    server.answer, path = answer, tmp_path / "a.jsonl"
    transitions, annotator = [OPENS, STAYS, BACK], EndpointAnnotator(endpoint(server))
    first = annotate(transitions, annotator, path)
    assert (len(first), len(first.malformed), first.failed["status 400"], first.left) == (1, 1, 1, 1)
    assert first.get(STAYS) is None and first.get(BACK) is None
    assert len(training_examples(transitions, form=DESCRIBED, annotate=first.get)) == 2  # both steps of OPENS
    out = capsys.readouterr().out
    assert "1 malformed, 1 failed, 1 left" in out and "failed: status 400: 1" in out
    server.answer = well
    second = annotate(transitions, annotator, path)
    assert (second.asked, second.reused, second.left) == (1, 2, 0) and second.get(BACK) is not None
    assert second.get(STAYS) is None and len(second.malformed) == 1
    third = annotate(transitions, annotator, path, retry_malformed=True)
    assert (third.asked, len(third), third.malformed) == (1, 3, {})
    last = annotate(transitions, annotator, path)  # the last answer to a transition holds
    assert (len(last), last.malformed, last.reused, last.left) == (3, {}, 3, 0)


def test_a_half_written_line_costs_one_answer(server, tmp_path):
    server.answer, path = well, tmp_path / "a.jsonl"
    annotator = EndpointAnnotator(endpoint(server, parallel=1))
    whole = annotate([OPENS, STAYS, BACK], annotator, path)
    path.write_bytes(path.read_bytes()[:-9])
    with path.open("ab") as file:
        file.write("é".encode()[:1])  # cut in the middle of a letter
    again = annotate([OPENS, STAYS, BACK], annotator, path)
    assert again.found == whole.found and (again.asked, again.reused) == (1, 2)
    assert annotate([OPENS, STAYS, BACK], annotator, path).asked == 0


def test_what_was_answered_before_ctrl_c_is_kept(server, tmp_path, capsys):
    transitions = [Transition(LIST, f"click [{i}]", MUG) for i in (1, 2)] + [BACK, STAYS]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background may have it ignored

    def answer(n, body):
        if n == 3:
            _thread.interrupt_main()
            time.sleep(0.3)
        return well(n, body)

    server.answer, path = answer, tmp_path / "a.jsonl"
    annotator = EndpointAnnotator(endpoint(server, parallel=1))
    with pytest.raises(KeyboardInterrupt):
        annotate(transitions, annotator, path)
    assert "2 left" in capsys.readouterr().out and len(path.read_text().splitlines()) == 2
    again = annotate(transitions, annotator, path)
    assert (again.reused, again.asked, again.left) == (2, 2, 0)


def test_a_dead_endpoint_is_not_asked_for_everything(server, tmp_path, capsys):
    server.answer = lambda n, body: (401, {}, b"who are you")
    transitions = [Transition(LIST, f"type [1] [{i}] [1]", MUG) for i in range(40)]
    annotations = annotate(transitions, EndpointAnnotator(endpoint(server, parallel=1)), give_up_after=5)
    assert annotations.failed == {"status 401": 5} and annotations.left == 40 and len(server.bodies) <= 8


def test_answers_of_another_model_are_not_taken_for_this_ones(server, tmp_path):
    server.answer, path = well, tmp_path / "a.jsonl"
    annotate([OPENS], EndpointAnnotator(endpoint(server)), path)
    other = Endpoint(server.url, "another", pause_seconds=0.01)
    assert annotate([OPENS], EndpointAnnotator(other), path).reused == 0
    path.write_text(path.read_text() + '[1]\n{"key": 1}\nnull\n{"by": "toy"}\n')
    assert annotate([OPENS], EndpointAnnotator(endpoint(server)), path).reused == 1


def test_the_key_reaches_no_file(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TOY_KEY", KEY)
    server.answer = lambda n, body: (403, {}, f"bad key {KEY}".encode()) if n > 1 else GOOD
    annotator = EndpointAnnotator(endpoint(server, key_variable="TOY_KEY", parallel=1))
    annotate([OPENS, BACK, STAYS], annotator, tmp_path / "a.jsonl", give_up_after=2)
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    captured = capsys.readouterr()
    assert KEY.encode() not in written and KEY not in captured.out + captured.err + repr(annotator)


def test_a_local_model_annotates_what_it_has_learnt(toy_model, tmp_path, capsys):
    garbage = annotate([OPENS, STAYS, BACK], ModelAnnotator(toy_model, max_new_tokens=8, batch=2), tmp_path / "a.jsonl")
    assert len(garbage) == 0 and len(garbage.malformed) == 3 and garbage.left == 0
    assert "reply tokens, read and written here" in capsys.readouterr().out
    prompt, reply = toy_model.prompt_tokens(annotation_messages(STAYS)), "Reason: Help.\nChange: none"
    tokens = torch.tensor([prompt + toy_model.reply_tokens(reply)])
    labels = tokens.clone()
    labels[:, : len(prompt)] = -100
    optimiser = torch.optim.AdamW(toy_model.model.parameters(), lr=1e-2)
    for _ in range(80):
        loss = toy_model.model(input_ids=tokens, labels=labels).loss
        if loss < 0.05:
            break
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    annotations = annotate([STAYS], ModelAnnotator(toy_model, max_new_tokens=40))
    assert annotations.get(STAYS) == Annotation("Help.", "")
