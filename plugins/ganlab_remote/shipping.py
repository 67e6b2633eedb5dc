"""A trained run as a small folder to publish: its networks, a card, and an archive that is a run again elsewhere."""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ganlab_archive import Limits, archive, unarchive
from ganlab_compare import markdown_escaped
from ganlab_passport import encode

from ganlab import Run, new_folder
from ganlab.commands import listed, say
from ganlab.errors import ConfigError, GanlabError, MissingDependencyError, RunError
from ganlab.files import is_name, line, new_file, open_inside, open_stored, scratch_folder, walk
from ganlab.runs import CONFIG, INFO, METRICS, checkpoint_steps
from ganlab_remote.addresses import Remote, is_known
from ganlab_remote.manifests import CHECKPOINTS

ARCHIVE, README = "run.tar.gz", "README.md"
_HUB = "hf://"
_SHIPPED = (CONFIG, "operative.gin", INFO, METRICS)


def push(run: Run, address: str, *, checkpoints: int, certify: bool) -> list[str]:
    """Writes a run's networks, card and archive to an address or into a folder."""
    from ganlab.engine import find_checkpoint
    from ganlab.functional import unique_names

    if not address.startswith(_HUB):
        _check_replaceable(address)  # before anything is made
    newest = find_checkpoint(run)
    networks = sorted({name.partition("/")[0] for name, _ in newest.values() if name.split("/")[1:2] == ["weights"]})
    upper = run.certify().upper if certify else None
    with scratch_folder("ganlab-push-") as made:
        folder, copy = Path(made) / "files", Path(made) / "runs" / run.path.resolve().name
        folder.mkdir()
        best = run.info.get("best")
        kept = {*checkpoint_steps(run.path)[-checkpoints:], *([best["step"]] if best else [])} if checkpoints else set()
        _copy(run.path, copy, kept)
        archive([copy], folder / ARCHIVE)
        for name in (CONFIG, INFO):
            shutil.move(copy / name, folder / name)
        for network in networks:
            try:
                values = [each for each in run.network(network).variables if each.dtype.startswith("float")]
            except ConfigError as error:  # of an architecture that was made in Python
                say(f"{network}.safetensors is left out: {line(error)}", err=True)
                continue
            arrays = {name: np.asarray(value) for name, value in unique_names(values).items()}
            with new_file(folder / f"{network}.safetensors") as file:
                file.write(encode(arrays, {"step": newest.step}, ".safetensors"))
        written = sorted(path.name for path in folder.glob("*.safetensors"))
        text = card(run.info, newest.step, address, sorted(kept), upper, written)
        (folder / README).write_text(text, encoding="utf-8")
        _send(folder, address)
        return sorted(path.name for path in folder.iterdir())


def pull(address: str, output: Path) -> list[Path]:
    """Unpacks the run of a pushed folder, which may be a stranger's."""
    remote, name = Remote(_fsspec(address)), address.rstrip("/").rpartition("/")[2]
    if not is_name(name):
        raise ConfigError(f"{line(address)} does not end in a name for the folder of the run.")
    size = remote.sizes().get(ARCHIVE)
    if size is None:
        raise RunError(f"{line(address)} has no {ARCHIVE}. Give an address that 'ganlab push' wrote to.")
    if size > Limits().bytes:
        raise RunError(f"{line(address)}/{ARCHIVE} has {size} bytes, more than {Limits().bytes}.")
    with scratch_folder("ganlab-pull-") as made:
        with (Path(made) / ARCHIVE).open("xb") as file:
            file.writelines(remote.stream(ARCHIVE, size))
        try:
            return unarchive(Path(made) / ARCHIVE, output / name)
        except GanlabError as error:
            raise RunError(str(error).replace(str(Path(made) / ARCHIVE), f"{line(address)}/{ARCHIVE}")) from error


def card(
    info: Mapping[str, Any], step: int, address: str, kept: list[int], upper: float | None, networks: list[str]
) -> str:
    """The page of a pushed folder, a model card; `networks` are their files."""
    provenance, settings = info.get("provenance", {}), info.get("settings", {})
    git, data = provenance.get("git") or {}, json.dumps(provenance.get("data"))
    rows = {
        "data": f"{settings.get('dataset')}" + f", fingerprint {data}",
        "architecture": settings.get("architecture"),
        "constraints": settings.get("constraints"),
        "steps": f"{step} of {info.get('steps')}, seed {info.get('seed')}",
        "commit": f"{git['commit']}{', with changes' if git.get('dirty') else ''}" if git.get("commit") else None,
        "packages": ", ".join(f"{name} {version}" for name, version in provenance.get("packages", {}).items()),
        "critic's Lipschitz constant": None if upper is None else f"at most {upper:.6g}, by ganlab certify",
        **{name: f"{value:.6g}" for name, value in info.get("evaluation", {}).items()},
    }
    table = "\n".join(f"| {_cell(name)} | {_cell(value)} |" for name, value in rows.items() if value)
    steps, files = ", ".join(map(str, kept)), ", ".join(f"`{name}`" for name in networks)
    weights = (
        f"{files}: the networks' weights, as constraints make them, by the names of layers. The generator's are those "
        "that samples are drawn with, their average if the run keeps one.\n\n"
    )
    return f"""---
library_name: ganlab
pipeline_tag: unconditional-image-generation
tags: [gan, lipschitz]
---
# A GAN trained by ganlab

| | |
|---|---|
{table}

{weights if networks else ""}`config.gin` is the experiment. `run.tar.gz` is the run, with
{f"the checkpoints of step {steps}" if kept else "no checkpoint"}:

```sh
pip install -e '.[cpu,hub]'   # in ganlab's source tree
ganlab pull {shlex.quote(line(address))}
```
"""


def _cell(value: Any) -> str:
    # A bare address would be a link all the same.
    return markdown_escaped(value).replace("://", "&#58;//").replace("www.", "www&#46;")


def _copy(run: Path, copy: Path, steps: set[int]) -> None:
    """Copies what is shipped of a run."""
    names = [name for name in _SHIPPED if (run / name).exists()]
    for step in steps:
        top = run / CHECKPOINTS / f"step-{step:08d}"
        names += [Path(at, name).relative_to(run).as_posix() for at, _, files in walk(top) for name in files]
    _copy_files(run, names, copy)


def _copy_files(folder: Path, names: Iterable[str], copy: Path) -> None:
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        with open_stored(folder, name) as source, (copy / name).open("xb") as target:
            shutil.copyfileobj(source, target)


def _send(folder: Path, address: str) -> None:
    if address.startswith(_HUB):
        try:
            from huggingface_hub import HfApi
        except ImportError:
            raise MissingDependencyError(
                f"{line(address)} needs huggingface_hub: pip install -e '.[hub]' in ganlab's source tree"
            ) from None
        name, api = address.removeprefix(_HUB).strip("/"), HfApi()
        try:
            api.create_repo(name, exist_ok=True)
            api.upload_folder(repo_id=name, folder_path=folder, commit_message="Written by ganlab push")
        except Exception as error:
            raise RunError(f"{line(address)} cannot be written: {line(error):.300}") from error
        return
    if "://" not in address:
        _place(folder, Path(address).resolve())
        return
    remote = Remote(address)
    before, names = _check_replaceable(address), sorted(path.name for path in folder.iterdir())
    remote.remove([README])  # which is there only if all else is of one run
    try:
        for name in sorted(names, key=README.__eq__):
            with open_inside(folder, name) as file:
                remote.write(name, file.read())
    except RunError as error:
        raise RunError(f"{error} What is there is not whole: push the run again.") from error
    remote.remove(sorted(before - set(names)))


def _check_replaceable(address: str) -> set[str]:
    """The names of what lies at an address, which must be nothing, or what was pushed there."""
    names = set(Remote(_fsspec(address)).sizes())
    pushed = {ARCHIVE, README, CONFIG, INFO, *(name for name in names if re.fullmatch(r"[^/]+\.safetensors", name))}
    if others := sorted(names - pushed) or (sorted(names) if ARCHIVE not in names else []):
        shown = listed([line(name) for name in others], 3)
        raise RunError(f"{line(address)} has other files: {shown}. Name a new or an empty folder.")
    return names


def _place(folder: Path, target: Path) -> None:
    """Copies a folder to a path, whole or not at all; an older one stays until then."""
    names = [path.name for path in folder.iterdir()]
    if not (target.is_dir() and any(target.iterdir())):
        with new_folder(target) as part:
            _copy_files(folder, names, part)
        return
    token = secrets.token_hex(4)
    fresh, old = (target.with_name(f".{target.name}.{word}-{token}") for word in ("after", "before"))

    def refused(path: Path, error: OSError) -> RunError:
        why = error.strerror or error
        return RunError(f"{line(target)} cannot be written: {why}. What is there is what was pushed before.")

    with new_folder(fresh, refused) as part:
        _copy_files(folder, names, part)
    target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old)


def _fsspec(address: str) -> str:
    """The address for fsspec of a folder or an address."""
    if address == "-":
        raise ConfigError("- is standard input or output, which is not taken here: give a folder (./- for this name).")
    address = address if "://" in address else f"file://{Path(address).absolute()}"
    if not is_known(address):
        raise ConfigError(f"{line(address)} has a scheme that fsspec does not know.")
    return address
