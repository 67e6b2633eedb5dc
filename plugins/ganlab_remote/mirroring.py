"""Mirrors a run beside its training: a thread sends the state at each new checkpoint, and the last one at the end."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import socket
import threading
import time
from pathlib import Path
from typing import Any

from ganlab.commands import warn
from ganlab.errors import RunError, TrainingFailedError
from ganlab.files import line, read_json, schema, write_text
from ganlab.runs import RunDirectory, checkpoint_steps
from ganlab_remote.addresses import Remote
from ganlab_remote.manifests import Manifest, Stored, digest, encode, found_in, newest, number_of, part_path
from ganlab_remote.snapshots import RECORD, Held, snapshot

# How long the end of a run tries to send the last state.
_SECONDS = 120.0
_LOOK_SECONDS, _FIRST_WAIT, _LONGEST_WAIT = 0.5, 1.0, 60.0
_RECORD = schema.fields({"address": schema.PATH, "manifest": schema.WORD})


class TakenOverError(RunError):
    """Another process mirrors a run to the same address."""


class Mirror:
    """The mirror of one run, written by this process alone."""

    def __init__(self, remote: Remote, run: Path) -> None:
        self.remote, self._run = remote, run
        self.step: int | None = None
        self._before: Manifest | None = None  # the newest whole one
        self._seen: set[str] = set()  # the manifests that were there when this process began, and its own
        self._sent: dict[str, int] | None = None
        self.damaged: set[str] = set()  # parts that were found missing or damaged
        self._known: dict[str, tuple[tuple[int, ...], Stored]] = {}

    def begin(self) -> Manifest | None:
        """Finds the state that this process continues, the newest one that is there; None in a new mirror."""
        sizes = self.remote.sizes()
        there = found_in(sizes).get("", [])
        self._before, self._seen = newest(self.remote, there, sizes), set(there)
        return self._before

    def record(self) -> None:
        """Notes in the run where its mirror is and what it has."""
        manifest = self._before.name if self._before else ""
        record = {"address": self.remote.address, "manifest": manifest, "step": self.step}
        write_text(self._run / RECORD, json.dumps(record, indent=2) + "\n")

    def send(self, *, again: bool = True) -> None:
        """Sends the present state, whole or not at all, unless it is not to be sent again: its manifest comes last."""
        if self._sent is None:  # what an earlier process sent; a part that it sent incompletely has another size
            sizes = self.remote.sizes()
            parts = {name.removeprefix("content/"): size for name, size in sizes.items()}
            self._sent = {part: size for part, size in parts.items() if part not in self.damaged}
            self.record()
        with snapshot(self._run) as held:
            steps = checkpoint_steps(self._run)
            files = {name: self._stored(self._sent, name, file) for name, file in held.items()}
            sizes = self.remote.sizes()
            parts = {part: size for file in files.values() for part, size in file.sizes()}
            lost = {part for part, size in parts.items() if sizes.get(part_path(part)) != size}
            if lost:  # it was there, and somebody has removed it
                self._sent = {part: size for part, size in self._sent.items() if part not in lost}
                self._known.clear()
                files = {name: self._stored(self._sent, name, file) for name, file in held.items()}
                sizes = self.remote.sizes()
        there = found_in(sizes).get("", [])
        if not self._seen.issuperset(there):
            raise TakenOverError(
                f"{line(self.remote.address)} is now mirrored by another process, so this one leaves it alone. "
                f"To train on without it: ganlab run --resume {line(shlex.quote(str(self._run)))}"
            )
        self.step = max(steps, default=None)
        if not again and self._before and files == self._before.files and self._before.name in there:
            self.record()
            return
        manifest, data = encode(1 + max(map(number_of, there), default=0), secrets.token_hex(8), files)
        self._seen.add(manifest.name)
        self.remote.write(manifest.name, data)
        keep = manifest.parts() | (self._before.parts() if self._before else {})
        kept = (manifest.name, self._before.name if self._before else "")
        self._before = manifest
        self.record()
        self.remote.remove([name for name in there if name not in kept])
        self.remote.remove([part_path(part) for part in self._sent if part not in keep])
        self._sent = {part: size for part, size in self._sent.items() if part in keep}

    def _stored(self, sent: dict[str, int], name: str, file: Held) -> Stored:
        """A file of the mirror, after sending those of its parts that are not there."""
        mark, stored = self._known.get(name, (None, None))
        if stored is not None and mark == file.mark:
            return stored
        parts = []
        for data in file.parts():
            parts.append(digest(data))
            if sent.get(parts[-1]) != len(data):
                self.remote.write(part_path(parts[-1]), data)
                sent[parts[-1]] = len(data)
        self._known[name] = file.mark, Stored(file.size, tuple(parts))
        return self._known[name][1]


class Mirroring:
    """Mirrors a run from the moment at which this process trains it, in a thread, until `finish`."""

    def __init__(self, mirror: Mirror, run: Path) -> None:
        """Starts the thread; the run's directory need not exist yet."""
        self._mirror, self._run = mirror, run
        self._ending, self._done = threading.Event(), threading.Event()
        self._until = float("inf")
        self._failure: BaseException | None = None
        self._mine = False
        threading.Thread(target=self._serve, name="ganlab-mirror", daemon=True).start()

    def finish(self) -> str:
        """Sends the last state, or gives up after a while."""
        self._until = time.monotonic() + _SECONDS
        self._ending.set()
        try:
            reason = "" if self._done.wait(_SECONDS + _FIRST_WAIT) else f"no answer for {_SECONDS:g} s."
        except KeyboardInterrupt:
            reason = "sending it was interrupted."
        if isinstance(self._failure, TakenOverError):
            raise TrainingFailedError(f"The last state of {line(self._run)} is not in its mirror: {self._failure}")
        where, step = self._mirror.remote.address, self._mirror.step
        has = "no checkpoint" if step is None else f"step {step}"
        if reason or self._failure is not None:
            raise TrainingFailedError(
                f"The last state of {line(self._run)} is not in its mirror, which has {has}: {reason or self._failure} "
                "The folder is kept. Once that is repaired, send it from here: "
                f"ganlab run --resume {line(shlex.quote(where))}"
            )
        return f"Mirror: {line(where)} has {has}." if self._mine else ""

    def _serve(self) -> None:
        try:
            while not self._is_mine():
                if self._ending.wait(_LOOK_SECONDS) and not self._is_mine():
                    return
            sent: list[int] | None = None
            while True:
                ending, steps = self._ending.is_set(), checkpoint_steps(self._run)
                if ending or steps != sent:
                    if self._send_until_it_works():
                        return
                    sent = steps
                self._ending.wait(_LOOK_SECONDS)
        except BaseException as error:
            self._failure = error
        finally:
            self._done.set()

    def _send_until_it_works(self) -> bool:
        """Sends the present state, however often it takes; returns whether nothing is left to do."""
        wait, said = _FIRST_WAIT, set()
        while True:
            ending = self._ending.is_set()
            try:
                self._mirror.send()
                return ending
            except (RunError, OSError) as error:
                if isinstance(error, TakenOverError) or time.monotonic() + wait > self._until:
                    self._failure = error
                    if not ending:
                        warn(f"Mirroring stopped: {error}")
                    return True
                if str(error) not in said:
                    said.add(str(error))
                    warn(f"Not mirrored: {error} It is tried again, and training goes on.")
            if ending:
                time.sleep(wait)
            else:
                self._ending.wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _is_mine(self) -> bool:
        """Whether this process trains the run: another one may, under the same name or as the chief."""
        if not self._mine:
            with contextlib.suppress(RunError, OSError):
                process = RunDirectory(self._run).info.get("process")
                self._mine = process == f"process {os.getpid()} on {line(socket.gethostname())}"
        return self._mine


def recorded(run: Path) -> dict[str, Any] | None:
    """The address of a run's mirror and the newest manifest that was sent from this folder; None without one."""
    try:
        record: dict[str, Any] = read_json(run, RECORD, _RECORD, most=1 << 14, remedy="Remove the file.")
    except FileNotFoundError:
        return None
    return record
