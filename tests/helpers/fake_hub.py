"""A server that speaks as much of the hub's protocol as its client needs to fetch a model."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Handler(BaseHTTPRequestHandler):
    """Repositories by id: a folder to serve, or the name of the error to answer with."""

    repos: dict[str, Path | str]
    requested: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self, body: bool) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        repo = "/".join(parts[2:4] if api else parts[:2])
        self.requested.append(self.path)
        target = self.repos.get(repo, "RepoNotFound")
        if isinstance(target, str):
            self._send(403 if target == "GatedRepo" else 404, b"{}", body, {"X-Error-Code": target})
        elif api and "tree" in parts:
            self._send(200, json.dumps(_tree(target)).encode(), body)
        elif api:
            if parts[-1] not in {"main", COMMIT}:
                self._send(404, b"{}", body, {"X-Error-Code": "RevisionNotFound"})
                return
            siblings = [{"rfilename": entry["path"]} for entry in _tree(target)]
            self._send(200, json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings}).encode(), body)
        else:
            content = (target / parts[-1]).read_bytes()
            etag = hashlib.sha256(content).hexdigest()
            self._send(200, content, body, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})

    def _send(self, status: int, content: bytes, body: bool, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def _tree(folder: Path) -> list[dict[str, object]]:
    return [
        {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": "0" * 40}
        for path in sorted(folder.iterdir())
        if path.is_file()
    ]


@contextmanager
def fake_hub(repos: dict[str, Path | str]) -> Iterator[tuple[str, list[str]]]:
    """Serve ``repos`` on this machine; yields the address and the list of paths asked for."""
    requested: list[str] = []
    handler = type("Handler", (_Handler,), {"repos": repos, "requested": requested})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requested
    finally:
        server.shutdown()
        server.server_close()
