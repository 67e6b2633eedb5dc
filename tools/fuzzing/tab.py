"""Fuzz target: the tab answers any request, whatever runs are in its folder, and never with an error of its own."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from ganlab_tensorboard.plugin import GanlabTab
from hypothesis import strategies as st

from fuzzing import metrics, settings
from fuzzing.drawing import WORDS, mutated, weighted
from ganlab.runs import create_run

_ROUTES = ["/data/overview", "/data/compare", "/data/series", "/data/run", "/data/sample", "/index.js"]
_NAMES = ["run", "tag", "metric", "against", "curve", "step"]
_HEADERS = ["HTTP_HOST", "HTTP_ORIGIN", "HTTP_ACCEPT_ENCODING", "HTTP_RANGE", "HTTP_IF_NONE_MATCH", "CONTENT_TYPE"]
_HEADERS += ["CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING", "HTTP_X_FORWARDED_HOST", "HTTP_COOKIE"]
_VALUES = ["0", "3", "-1", "9" * 18, "gzip", "localhost:6006", "evil.example", "critic/loss", "critic/loss:max"]
_VALUES += ["RUN"]
_QUERIES = [b"run=RUN&tag=critic/loss", b"metric=critic/loss&curve=critic/loss&against=a", b"run=RUN&step=3", b""]


def requests() -> st.SearchStrategy[tuple[bytes, bytes, list[Any]]]:
    """The run.json and metrics.jsonl of a run, and requests: route, method, query, headers, body."""
    value = st.one_of(st.sampled_from(_VALUES), WORDS)
    pairs = st.lists(
        st.tuples(st.sampled_from(_NAMES), value.map(lambda text: quote(text, errors="replace"))), max_size=5
    )
    queries = pairs.map(lambda pairs: "&".join(f"{name}={text}" for name, text in pairs).encode())
    pieces = [b"%", b"%00", b"%FF", b"&", b"=", b"+", b";", b"tag=" * 200, b"%F0%9F", b"..%2f", b"\xff"]
    request = st.tuples(
        st.sampled_from(_ROUTES),
        weighted((6, st.just("GET")), (1, st.sampled_from(["POST", "HEAD", "OPTIONS", "x\x00", "get"]))),
        st.one_of(queries, mutated(_QUERIES, pieces)),
        st.dictionaries(st.sampled_from(_HEADERS), value, max_size=3),
        st.binary(max_size=20),
    )
    return st.tuples(settings.files(), metrics.files(), st.lists(request, min_size=1, max_size=8))


def check(drawn: tuple[bytes, bytes, list[Any]], folder: Path) -> None:
    """Asks the tab about a sound run and an odd one."""
    info, rows, asked = drawn
    for name in ("a", "b"):
        run = create_run(folder / "runs" / name, config="", operative="", info=settings.SOUND)
        (run.path / "metrics.jsonl").write_bytes(settings.ROW)
    (folder / "runs" / "b" / "run.json").write_bytes(info)
    (folder / "runs" / "b" / "metrics.jsonl").write_bytes(rows)
    tab = GanlabTab(SimpleNamespace(logdir=str(folder / "runs"), flags=None))
    apps = tab.get_plugin_apps()
    known = [run.id for run in tab.store.runs()]
    for number, (route, method, query, headers, body) in enumerate(asked):
        query = query.replace(b"RUN", known[number % len(known)].encode())
        environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": f"/data/plugin/ganlab{route}",
            "QUERY_STRING": query.decode("latin1"),
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "6006",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "localhost:6006",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            # What a server makes of a header's bytes.
            **{name: text.encode("utf-8", "replace").decode("latin1") for name, text in headers.items()},
        }
        _ask(apps[route], environ, route)
    tab.store.finish()


def _ask(app: Any, environ: dict[str, Any], route: str) -> None:
    begun: dict[str, Any] = {}

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        begun.update(status=status, headers=dict(headers))
        return lambda data: None

    answer = app(environ, start_response)
    try:
        data = b"".join(answer)
    finally:
        getattr(answer, "close", lambda: None)()
    code = int(begun["status"].split()[0])
    assert code < 500, begun["status"]
    if route.startswith("/data") and code == 200:
        assert begun["headers"]["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert begun["headers"]["X-Content-Type-Options"] == "nosniff"
    if begun["headers"]["Content-Type"].startswith("application/json") and environ["REQUEST_METHOD"] != "HEAD":
        encoded = "Content-Encoding" in begun["headers"]
        json.loads(gzip.decompress(data) if encoded else data, parse_constant=lambda name: 1 / 0)
