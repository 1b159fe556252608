"""Many, slow, careless and hostile visitors of a public server; its laboratory computes nothing."""

from __future__ import annotations

import gc
import hashlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from ghostlab.progress import Progress
from ghostlab.settings import PUBLIC_LIMITS, Settings
from ghostlab.ui import app
from ghostlab.ui.app import build_app
from tests.helpers.documents import DOCUMENTS
from tests.helpers.fakelab import FakeLab
from tests.helpers.ports import free_port
from tests.helpers.visitor import Visitor

pytestmark = pytest.mark.ui
README = Path(__file__).resolve().parents[2] / "README.md"
PAGES = 8
SECONDS = 20.0


@dataclass
class Host:
    """A server and the gate that its runs wait at while it is closed."""

    url: str
    gate: threading.Event
    folder: Path
    config: dict[str, Any]

    def visitor(self) -> Visitor:
        return Visitor(self.url, self.config)

    def ended(self, client: Client, run_id: str) -> str:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            state: str = client.predict(run_id, api_name="/status")["state"]
            if state not in ("waiting", "running"):
                return state
            time.sleep(0.05)
        raise AssertionError(f"still {state}")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    gate = threading.Event()
    gate.set()

    def wait(progress: Progress) -> None:
        while not gate.wait(0.01):
            progress.check()

    settings = Settings(
        "public", cache=folder / "cache", limits=replace(PUBLIC_LIMITS, open_pages=PAGES, waiting_jobs=2)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(folder / "gradio"))
        patch.setattr(app, "RESERVE", 2)
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        demo, arguments = build_app(settings, FakeLab(wait))
        _, url, _ = demo.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True, **arguments)
        yield Host(url, gate, folder, Visitor(url).config)
        gate.set()
        demo.close()


@pytest.fixture
def held(host: Host) -> Iterator[Host]:
    """The host with its gate closed: runs go on until they are stopped."""
    host.gate.clear()
    yield host
    host.gate.set()


def test_fifty_pages_that_came_and_went_leave_memory_where_it_was(host: Host) -> None:
    process = psutil.Process()

    def come_and_go(pages: int) -> tuple[int, int]:
        for _ in range(pages):
            with host.visitor() as visitor:
                sent = visitor.open_page()
        gc.collect()
        return sent, process.memory_info().rss

    sent, before = come_and_go(PAGES + 2)
    assert sent > 200_000, "the figures of the example"
    _, after = come_and_go(40)
    assert after - before < 30e6, f"{(after - before) / 40e6:.2f} MB per page; 1.5 when states are kept"
    assert process.num_threads() < 120


def test_a_job_outlives_the_page_that_started_it_and_any_other_finds_it_by_its_id(held: Host) -> None:
    with held.visitor() as visitor:
        started = Client(held.url, verbose=False)
        run_id = started.predict({"seed": 11}, api_name="/run")
        started.close()
        visitor.ask(visitor.events("watch")[0], run_id, "", []).raise_for_status()
        next(message for message in visitor.heard() if message["msg"] == "process_generating")
    other = Client(held.url, verbose=False)
    with held.visitor() as visitor:
        assert visitor.open_page() > 200_000, "a page opens while something is computed"
    assert other.predict(run_id, api_name="/status")["state"] == "running"
    held.gate.set()
    assert held.ended(other, run_id) == "done"
    assert other.predict(run_id, api_name="/result")["config"]["seed"] == 11


def test_while_all_pages_follow_a_job_another_opens_at_once(held: Host) -> None:
    run_id = Client(held.url, verbose=False).predict({"seed": 21}, api_name="/run")
    visitors, streams = [held.visitor() for _ in range(PAGES - 1)], []
    try:
        for visitor in visitors:
            visitor.ask(visitor.events("watch")[0], run_id, "", []).raise_for_status()
            streams.append(visitor.heard())  # kept: a page whose stream ends follows nothing
            next(message for message in streams[-1] if message["msg"] == "process_generating")
        begun = time.monotonic()
        with held.visitor() as another:
            assert another.open_page() > 200_000
        assert time.monotonic() - begun < 10
    finally:
        for visitor in visitors:
            visitor.http.close()
    held.gate.set()
    assert held.ended(Client(held.url, verbose=False), run_id) == "done"


def test_a_full_waiting_list_is_told_and_frees_itself(held: Host) -> None:
    client = Client(held.url, verbose=False)
    ids = [client.predict({"seed": seed}, api_name="/run") for seed in range(3)]
    assert [client.predict(run_id, api_name="/status")["position"] for run_id in ids] == [0, 1, 2]
    with pytest.raises(AppError, match="2 runs are already waiting"):
        client.predict({"seed": 9}, api_name="/run")
    for run_id in reversed(ids):
        assert client.predict(run_id, api_name="/cancel")["state"] in ("stopped", "running")
    assert [held.ended(client, run_id) for run_id in ids] == ["stopped"] * 3


def test_visitors_who_do_not_read_or_never_finish_asking_hold_up_nobody(host: Host) -> None:
    place = urlsplit(host.url)
    sockets = []
    try:
        for index in range(16):
            slow = socket.create_connection((place.hostname, place.port))
            sockets.append(slow)
            if index % 2:
                slow.sendall(
                    b"POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\nab"
                )
            else:
                with host.visitor() as visitor:
                    visitor.ask(visitor.events(trigger="load")[0]).raise_for_status()
                path = f"/gradio_api/queue/data?session_hash={visitor.session}"
                slow.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        begun = time.monotonic()
        client = Client(host.url, verbose=False)
        assert host.ended(client, client.predict({"seed": 12}, api_name="/run")) == "done"
        assert time.monotonic() - begun < 10
    finally:
        for slow in sockets:
            slow.close()


def uploaded(visitor: Visitor, name: str, content: bytes) -> str:
    (path,) = visitor.http.post("gradio_api/upload", files={"files": (name, content)}).json()
    return str(path)


def test_no_file_but_what_the_app_gives_out_can_be_fetched(host: Host) -> None:
    text = "\n\n".join(DOCUMENTS[:30]).encode()
    with host.visitor() as visitor:
        sent = uploaded(visitor, "../../../mine.txt", text)
        assert Path(sent).is_relative_to(host.folder / "gradio")
        (take,) = (
            event for event in visitor.events(trigger="upload") if event["api_name"].startswith("take")
        )
        told = visitor.outcome(take, {"path": sent, "meta": {"_type": "gradio.FileData"}})
        assert told["success"], told
        (kept,) = (host.folder / "cache" / "uploads").glob("*/mine.txt")
        secret = host.folder / "secret.txt"
        secret.write_text("nobody may read this")
        link = host.folder / "gradio" / hashlib.sha256(b"x").hexdigest() / "link.txt"
        link.parent.mkdir(parents=True)
        link.symlink_to(secret)
        places = [
            "/etc/passwd",
            "app.py",
            str(Path("app.py").resolve()),
            str(kept),
            sent,
            str(secret),
            str(link),
        ]
        places += [
            f"{host.folder}/gradio/../secret.txt",
            "..%2f..%2f..%2fetc/passwd",
            "//etc/passwd",
            "~/.bashrc",
        ]
        for place in places:
            answer = visitor.http.get(f"gradio_api/file={place}")
            assert answer.status_code in (403, 404), f"{place}: {answer.status_code} {answer.text[:80]}"
            assert b"Traceback" not in answer.content
        for route in (
            "static/..%2f..%2f..%2fetc/passwd",
            "assets/..%2f..%2froutes.py",
            "custom_component/x/y/z",
        ):
            assert visitor.http.get(route).status_code in (403, 404)
            assert visitor.http.get(f"gradio_api/{route}").status_code in (403, 404)


@pytest.mark.parametrize(
    "path", ["/etc/hostname", "app.py", "../secret.txt", "http://127.0.0.1:9/inside", "LINK", "", None, 7]
)
def test_a_made_up_upload_reads_no_other_file_and_tells_nothing(host: Host, path: Any) -> None:
    if path == "LINK":
        link = host.folder / "gradio" / "crafted" / "link.txt"
        link.parent.mkdir(parents=True)
        link.symlink_to("/etc/hostname")
        path = str(link)
    with host.visitor() as visitor:
        takers = visitor.events(trigger="upload")
        assert takers
        for take in takers:
            told = visitor.outcome(take, {"path": path, "meta": {"_type": "gradio.FileData"}})
            assert not told["success"], take["api_name"]
            assert "Traceback" not in str(told)
            assert Path("/etc/hostname").read_text().strip() not in str(told["output"])


def test_an_upload_above_the_limit_is_refused_while_it_arrives(host: Host) -> None:
    with host.visitor() as visitor:
        large = b"x" * (max(PUBLIC_LIMITS.upload_bytes, PUBLIC_LIMITS.file_bytes) + 1)
        answer = visitor.http.post("gradio_api/upload", files={"files": ("a.txt", large)})
        assert answer.status_code == 413
    assert not list((host.folder / "gradio").rglob("a.txt"))


def test_nonsense_of_any_kind_is_no_trace_of_the_servers_insides_and_no_harm(host: Host) -> None:
    with host.visitor() as visitor:
        for event in visitor.config["dependencies"]:
            if event["backend_fn"] and not event["api_name"].startswith(("watch", "run")):
                told = str(visitor.outcome(event, *[{"a": ["\x00"]}] * len(event["inputs"])))
                assert "Traceback" not in told, event["api_name"]
                assert "site-packages" not in told, event["api_name"]
        for name in ("words", "figures", "make", "status", "result"):
            (event,) = visitor.events(name)
            told = visitor.outcome(event, *["no-such-run"] * len(event["inputs"]))["output"]
            assert "on this server" in told["error"], name
        assert (
            visitor.http.post("gradio_api/queue/join", json={"data": [], "fn_index": 9999}).status_code >= 400
        )
        assert visitor.http.post("gradio_api/queue/join", content=b"{").status_code >= 400
    client = Client(host.url, verbose=False)
    assert host.ended(client, client.predict({"seed": 13}, api_name="/run")) == "done"


# -- scripts ------------------------------------------------------------------------------------------------


def test_the_script_in_the_readme_does_what_it_says(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(
        r"```python\n(import time\n.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert "http://127.0.0.1:7860/" in code
    told: dict[str, Any] = {}
    exec(code.replace("http://127.0.0.1:7860/", host.url), told)
    assert told["status"]["state"] == "done"
    assert told["result"]["config"]["recover"] == ["ghost"]
    assert "done  [" in capsys.readouterr().out
    assert host.ended(told["app"], told["job"]) in ("done", "stopped")


def test_a_block_map_is_to_be_had_by_name(host: Host) -> None:
    client = Client(host.url, verbose=False)
    job = client.predict({"sequences": 8}, "1-2", api_name="/atlas")
    assert host.ended(client, job) == "done"
    found = client.predict(job, api_name="/result")
    assert {"start", "stop", "ghost"} <= set(found["blocks"][0])
    with pytest.raises(AppError, match="ten"):
        client.predict({}, "ten", api_name="/atlas")


def test_the_page_on_the_api_says_what_each_endpoint_does(host: Host) -> None:
    with host.visitor() as visitor:
        named = visitor.http.get("gradio_api/info").json()["named_endpoints"]
    assert list(named) == ["/run", "/atlas", "/status", "/result", "/cancel"]
    for name, endpoint in named.items():
        assert len(endpoint["description"]) > 60, name
        for parameter in endpoint["parameters"]:
            word = parameter["parameter_name"]
            assert word in endpoint["description"] or word == "run_id", name
