"""The plugin of TensorBoard: routes to the page's files and to its data."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from ganlab.errors import GanlabError, RunError
from ganlab.telemetry import to_json
from ganlab_tensorboard import views
from ganlab_tensorboard.hosts import guarded
from ganlab_tensorboard.store import Store

_TYPES = {".js": "text/javascript", ".css": "text/css"}

# Nothing of an answer may run, wherever it is opened. The page itself adds a policy of its own: static/policy.js.
_HEADERS = [("Content-Security-Policy", "default-src 'none'; sandbox"), ("Referrer-Policy", "no-referrer")]

# Longer names of metrics or configurations cannot be asked for.
_LONGEST = 500

Answer = Callable[[Store, Any], Any]


class GanlabTab(base_plugin.TBPlugin):
    """Shows the runs of ganlab below TensorBoard's folder; `tensorboard_plugins` is the group of its entry point."""

    plugin_name = "ganlab"

    def __init__(self, context: Any) -> None:
        """Takes the server's context, like every plugin of TensorBoard. Reads nothing yet."""
        super().__init__(context)
        folders = _folders(context)
        self.store = Store(lambda: folders)
        self._flags = context.flags

    def is_active(self) -> bool:
        """Whether there are runs, or files that should be some."""
        return bool(self.store.runs() or self.store.problems())

    def frontend_metadata(self) -> Any:
        """The module that draws the tab."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="ganlab", disable_reload=False)

    def get_plugin_apps(self) -> dict[str, Any]:
        """Every route: the files of the page, and the data of its views."""
        apps = {f"/{name}": _file(name) for name in static_files()}
        for route, answer in _DATA.items():
            apps[route] = self._data(answer)
        apps["/data/sample"] = self._sample
        return {route: guarded(app, self._flags) for route, app in apps.items()}

    def _data(self, answer: Answer) -> Any:
        @wrappers.Request.application
        def serve(request: Any) -> Any:
            try:
                with self.store.lock, _uncollected():
                    text, code = _as_json(answer(self.store, _arguments(request))), 200
            except GanlabError as error:
                text, code = json.dumps({"error": " ".join(str(error).split())}), 400
            return http_util.Respond(request, text, "application/json", code=code, headers=_HEADERS)

        return serve

    @wrappers.Request.application
    def _sample(self, request: Any) -> Any:
        try:
            arguments = _arguments(request)
            run = self.store.run(arguments.get("run", ""))
            step = max(views.sample_steps(run), default=0) if arguments.get("step") == "last" else None
            data = views.sample(run, _number(arguments.get("step", "")) if step is None else step)
        except GanlabError as error:
            text = " ".join(str(error).split())
            return http_util.Respond(request, text, "text/plain", code=404, headers=_HEADERS)
        return http_util.Respond(request, data, "image/png", headers=_HEADERS)


def _as_json(answer: Any) -> str:
    try:
        return json.dumps(answer, allow_nan=False)
    except ValueError:  # of a number that is not finite, which a stranger's file may lead to anywhere
        return json.dumps(to_json(answer), allow_nan=False)


def static_files() -> list[str]:
    """The files of the page, as they are named in addresses."""
    top = resources.files("ganlab_tensorboard") / "static"
    names = [
        f"{part}{file.name}" for part, folder in (("", top), ("vendor/", top / "vendor")) for file in folder.iterdir()
    ]
    return sorted(name for name in names if Path(name).suffix in _TYPES)


def _file(name: str) -> Any:
    data = resources.files("ganlab_tensorboard").joinpath("static", *name.split("/")).read_bytes()

    @wrappers.Request.application
    def serve(request: Any) -> Any:
        return http_util.Respond(request, data, _TYPES[Path(name).suffix], headers=_HEADERS)

    return serve


def _folders(context: Any) -> list[Path]:
    """The local folders that TensorBoard was started with."""
    folders = [context.logdir] if context.logdir else []
    specification = getattr(context.flags, "logdir_spec", "") if context.flags else ""
    for part in (specification or "").split(","):
        name, colon, path = part.partition(":")
        folders.append(path if colon and "/" not in name else part)
    return [Path(folder).expanduser() for folder in folders if folder and "://" not in folder]


def _comparison(store: Store, arguments: Any) -> Any:
    against, curve, by = (arguments.get(name) or None for name in ("against", "curve", "by"))
    metrics = [tag for tag in arguments.getlist("metric") if 0 < len(tag) <= _LONGEST][: views.MOST_TAGS]
    drawn = set(arguments.getlist("draw")) if "draw" in arguments else None
    return views.comparison(store, metrics, against, curve, by, drawn)


def _series(store: Store, arguments: Any) -> Any:
    tags = [tag for tag in arguments.getlist("tag") if 0 < len(tag) <= _LONGEST]
    return views.series(store, store.run(arguments.get("run", "")), tags)


def _details(store: Store, arguments: Any) -> Any:
    return views.details(store, store.run(arguments.get("run", "")))


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Context manager: pauses Python's collector: records of thousands of runs are millions of objects that stay."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _arguments(request: Any) -> Any:
    try:
        return request.args
    except UnicodeDecodeError:
        raise RunError("The address is not text in UTF-8.") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RunError("A step is a whole number.")
    return int(text)


_DATA: dict[str, Answer] = {
    "/data/overview": lambda store, arguments: views.overview(store),
    "/data/compare": _comparison,
    "/data/series": _series,
    "/data/run": _details,
}
