"""Scripts against a live server with the real laboratory and the embedded model."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.helpers.server import Server

pytestmark = pytest.mark.ui
SMALL = {"sequences": 8, "length": 64, "held_out": 4, "new_tokens": 4, "recover": ["ghost"]}
LONG = {**SMALL, "new_tokens": 900}
SECONDS = 200.0

Connect = Callable[[], Client]


@pytest.fixture
def connect(server: Server) -> Connect:
    return lambda: Client(server.url, verbose=False)


def ended(client: Client, run_id: str) -> dict[str, Any]:
    return until(client, run_id, lambda status: status["state"] not in ("waiting", "running"))


def until(client: Client, run_id: str, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        status: dict[str, Any] = client.predict(run_id, api_name="/status")
        if true(status):
            return status
        time.sleep(0.2)
    raise AssertionError(f"still {status}")


def test_a_small_run_goes_to_its_end_with_real_figures(connect: Connect) -> None:
    client = connect()
    run_id = client.predict(SMALL, api_name="/run")
    status = ended(client, run_id)
    assert (status["state"], status["error"], status["fraction"]) == ("done", "", 1.0)
    result = client.predict(run_id, api_name="/result")
    assert result["config"]["sequences"] == 8
    assert result["model"]["layers"] == 30
    original, pruned = (result["baseline"][name]["perplexity"]["value"] for name in ("original", "pruned"))
    assert 5 < original < pruned / 2
    assert [made["variant"] for made in result["generations"]] == ["original", "pruned", "ghost"]
    assert all(made["tokens"] == 4 for made in result["generations"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"drop": "3:6,5:8"}, "overlap"),
        ({"drop": "7:7"}, "Block 7:7 is empty"),
        ({"drop": "last five"}, "'last five' is not a block"),
        ({"sequences": "many"}, "'Sequences' is 'many'"),
        ({"recover": ["ghost,rank=big"]}, "Unknown option"),
        ({"ridge": "-1"}, "Ridge '-1' is not understood"),
        ({"recover": ["magic"]}, "There is no operator 'magic'"),
        ({"sequence": 8}, "Unknown setting 'sequence'. Did you mean 'sequences'"),
        ({"drop": "28:31"}, "lies outside the model"),
        ({"drop": "0:30"}, "drops all 30 layers"),
    ],
)
def test_a_request_that_cannot_work_is_refused_at_once_in_one_sentence(
    connect: Connect, change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AppError, match=sentence):
        connect().predict({**SMALL, **change}, api_name="/run")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"text": "paste:Too short."}, "text"),
        ({"length": 9000}, "8,192|8192"),
        ({"text": "no/such/file.txt"}, "no file no/such/file.txt"),
    ],
)
def test_what_only_the_model_or_text_can_tell_fails_the_run_in_one_sentence(
    connect: Connect, change: dict[str, Any], sentence: str
) -> None:
    client = connect()
    status = ended(client, client.predict({**SMALL, **change}, api_name="/run"))
    assert status["state"] == "failed"
    assert status["error"]
    assert "Internal error" not in status["error"]
    assert re.search(sentence, status["error"])


def test_stop_is_real_and_may_be_pressed_twice_and_the_next_run_works(connect: Connect) -> None:
    client = connect()
    run_id = client.predict(LONG, api_name="/run")
    until(client, run_id, lambda status: status["fraction"] > 0.85)
    asked = time.monotonic()
    for _ in range(2):
        client.predict(run_id, api_name="/cancel")
    assert ended(client, run_id)["state"] == "stopped"
    assert time.monotonic() - asked < 10
    kept = client.predict(run_id, api_name="/result")
    assert kept["runs"], "stopped while generating: the figures are kept"
    again = client.predict(SMALL, api_name="/run")
    assert ended(client, again)["state"] == "done"


def test_two_users_wait_for_each_other_and_cannot_disturb_each_other(connect: Connect) -> None:
    ann, bob = connect(), connect()
    first = ann.predict(LONG, api_name="/run")
    assert ann.predict(LONG, api_name="/run") == first, "a second press is the same job"
    second = bob.predict(LONG, api_name="/run")
    assert second != first
    status = bob.predict(second, api_name="/status")
    assert (status["state"], status["position"]) == ("waiting", 1)
    bob.predict(second, api_name="/cancel")
    assert bob.predict(second, api_name="/status")["state"] == "stopped"
    assert ann.predict(first, api_name="/status")["state"] == "running"
    ann.predict(first, api_name="/cancel")
    assert ended(ann, first)["state"] == "stopped"


def test_unknown_runs_are_said_to_be_unknown(connect: Connect) -> None:
    client = connect()
    for endpoint in ("/status", "/result", "/cancel"):
        with pytest.raises(AppError, match=r"no such run|no longer on this server"):
            client.predict("no-such-run", api_name=endpoint)
    with pytest.raises(AppError, match="No run is named"):
        client.predict("", api_name="/result")
