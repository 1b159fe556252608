"""A visitor without a browser: speaks to a server as the page's own script does, and as an attacker might."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import httpx

Message = dict[str, Any]


class Visitor:
    """One page: a session of its own, and a connection that ends with it."""

    def __init__(self, url: str, config: dict[str, Any] | None = None) -> None:
        self.http = httpx.Client(base_url=url, timeout=20, trust_env=False, verify=False)
        self.session = secrets.token_hex(5)
        self.config: dict[str, Any] = config or self.http.get("config").json()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.http.close()

    def events(self, name: str = "", trigger: str = "") -> list[dict[str, Any]]:
        """The server's events of this name, or with this trigger."""
        return [
            event
            for event in self.config["dependencies"]
            if event["backend_fn"]
            and (event["api_name"] == name or any(target[1] == trigger for target in event["targets"]))
        ]

    def ask(self, event: dict[str, Any], *data: Any) -> httpx.Response:
        """Queue an event as the page does, with these values or with none."""
        values = list(data) or [None] * len(event["inputs"])
        asked = {"data": values, "fn_index": event["id"], "session_hash": self.session}
        return self.http.post("gradio_api/queue/join", json=asked)

    def heard(self) -> Iterator[Message]:
        """What the server says of what was queued, until it has said everything."""
        with self.http.stream("GET", f"gradio_api/queue/data?session_hash={self.session}") as stream:
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    yield json.loads(line.removeprefix("data:"))

    def open_page(self) -> int:
        """What a browser does first; returns the size of what the page is then sent, in bytes."""
        self.http.get("/").raise_for_status()
        for event in self.events(trigger="load"):
            self.ask(event).raise_for_status()
        return sum(len(json.dumps(message)) for message in self.heard())

    def outcome(self, event: dict[str, Any], *data: Any) -> Message:
        """How an event ended."""
        joined = self.ask(event, *data)
        if joined.status_code != 200:
            return {"success": False, "output": joined.text}
        (last,) = [message for message in self.heard() if message["msg"] == "process_completed"]
        return dict(last)
