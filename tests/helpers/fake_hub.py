"""A server that speaks as much of the hub's protocol as its clients need to fetch models and data sets."""

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, unquote

import datasets
from huggingface_hub import constants

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONVERTED = "fedcba9876543210fedcba9876543210fedcba98"
"""Commit of the branch that holds the hub's own conversion of a data set to Parquet."""
REVISIONS = {"main": COMMIT, COMMIT: COMMIT, "refs/convert/parquet": CONVERTED, CONVERTED: CONVERTED}

_API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+))?(?:/(.*))?")
_FILE = re.compile(r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.*)")


class _Handler(BaseHTTPRequestHandler):
    """Repositories by id: a folder to serve, or the name of the error to answer with.

    A data set's id is ``datasets/org/name``, or ``datasets/org/name@CONVERTED`` for its conversion.
    """

    repos: dict[str, Path | str]
    requested: list[str]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_POST(self) -> None:
        self._answer(body=True)

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self, body: bool) -> None:
        self.requested.append(self.path)
        path = self.path.split("?")[0]
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if found := _API.fullmatch(path):
            kind, repo, what, revision, inside = found.groups()
            root = self._root(kind, repo, unquote(revision or "main"), body)
            if root is not None:
                answer = _listing(root, what, unquote(inside or ""), sent)
                about = {"id": repo, "sha": REVISIONS[unquote(revision or "main")], "siblings": _files(root)}
                self._send(200, json.dumps(about if answer is None else answer).encode(), body)
        elif found := _FILE.fullmatch(path):
            of_data, repo, revision, inside = found.groups()
            root = self._root("datasets" if of_data else "models", repo, unquote(revision), body)
            if root is not None:
                self._file(root, unquote(inside), REVISIONS[unquote(revision)], body)
        else:
            self._send(404, b"{}", body, {"X-Error-Code": "RepoNotFound"})

    def _root(self, kind: str, repo: str, revision: str, body: bool) -> Path | None:
        """The folder of a repository at a revision; answers with the error if there is none."""
        name = repo if kind == "models" else f"datasets/{repo}"
        if REVISIONS.get(revision) == CONVERTED:
            name += "@CONVERTED"
        target = self.repos.get(name, "RepoNotFound")
        if isinstance(target, str):
            self._send(403 if target == "GatedRepo" else 404, b"{}", body, {"X-Error-Code": target})
            return None
        if revision not in REVISIONS:
            self._send(404, b"{}", body, {"X-Error-Code": "RevisionNotFound"})
            return None
        return target

    def _file(self, root: Path, inside: str, commit: str, body: bool) -> None:
        path = root / inside
        if not path.is_file():
            self._send(404, b"{}", body, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            return
        content = path.read_bytes()
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": commit}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted is None:
            self._send(200, content, body, headers)
            return
        start, stop = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {start}-{stop}/{len(content)}"
        self._send(206, content[start : stop + 1], body, headers)

    def _send(self, status: int, content: bytes, body: bool, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def _listing(root: Path, what: str | None, inside: str, sent: str) -> list[dict[str, object]] | None:
    """The part of the tree that is asked for; ``None`` if the repository as such is."""
    if what == "tree":
        return [entry for entry in _tree(root) if str(entry["path"]).startswith(inside)]
    if what == "paths-info":
        asked = parse_qs(sent).get("paths") or json.loads(sent or "{}").get("paths", [])
        return [entry for entry in _tree(root) if entry["path"] in asked]
    return None


def _files(root: Path) -> list[dict[str, object]]:
    return [{"rfilename": entry["path"]} for entry in _tree(root) if entry["type"] == "file"]


def _tree(folder: Path) -> list[dict[str, object]]:
    """Everything in a repository, as the hub lists it."""
    return [
        {
            "type": "file" if path.is_file() else "directory",
            "path": path.relative_to(folder).as_posix(),
            "size": path.stat().st_size if path.is_file() else 0,
            "oid": "0" * 40,
        }
        for path in sorted(folder.rglob("*"))
    ]


@contextmanager
def fake_hub(repos: dict[str, Path | str]) -> Iterator[tuple[str, list[str]]]:
    """Serve ``repos`` on this machine; yields the address and the list of paths asked for."""
    requested: list[str] = []
    handler = type("Handler", (_Handler,), {"repos": repos, "requested": requested})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requested
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def fake_data_hub(repos: dict[str, Path | str], cache: Path) -> Iterator[list[str]]:
    """Let `datasets` read ``repos`` as if they were on the hub; yields the list of paths asked for."""
    with fake_hub(repos) as (address, asked):
        for_hub = {
            "HF_HUB_OFFLINE": False,
            "ENDPOINT": address,
            "HF_HUB_CACHE": str(cache / "hub"),
            "HUGGINGFACE_CO_URL_TEMPLATE": address + "/{repo_id}/resolve/{revision}/{filename}",
        }
        for_data = {
            "HF_HUB_OFFLINE": False,
            "HF_ENDPOINT": address,
            "HF_DATASETS_CACHE": cache / "datasets",
            "HUB_DATASETS_URL": address + "/datasets/{repo_id}/resolve/{revision}/{path}",
        }
        with (
            patch.multiple(constants, **for_hub),
            patch.multiple(datasets.config, **for_data),
            patch.dict(os.environ, {"NO_PROXY": "127.0.0.1"}),
        ):
            yield asked
