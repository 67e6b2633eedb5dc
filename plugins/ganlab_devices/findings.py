"""Decides what reports about devices mean. Only the look for a driver and its variable is not a pure function."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ganlab.lazy import INSTALL_TENSORFLOW, USE_TENSORFLOW, install

# What was checked, its state (`ok`, `note`, `broken`), and what was found.
Row = tuple[str, str, str]

# The largest error of a float32 result that is right, relative and in norm: TensorFloat-32 has 3e-4, float32 3e-7.
_RIGHT = 1e-5
_AMPERE = (8, 0)
_TITLES = {
    "libraries": "CUDA",
    "product": "matrix product",
    "convolution": "convolution",
    "xla": "XLA",
    "determinism": "determinism",
    "tensorfloat32": "TensorFloat-32",
}
_REMEDIES = {
    "xla": f"It needs ptxas and libdevice: {install('gpu')}, or XLA_FLAGS=--xla_gpu_cuda_data_dir=FOLDER, CUDA's. "
    "experiment.jit = 'off' trains without it",
    "determinism": "experiment.deterministic = False trains without such kernels",
}
_RENEW = f"Update NVIDIA's driver, or {install('gpu')}"


def gpus(seen: Mapping[str, Any]) -> list[str]:
    """The GPUs among the devices that TensorFlow sees."""
    return [device for device in seen["devices"] if device.startswith("GPU")]


def kernels(capability: Sequence[int], compiled: Sequence[str]) -> str:
    """The form in which TensorFlow has its kernels for a card: `machine code`, `PTX` or `none`.

    Machine code (`sm_80`) runs on cards of its major version and of its minor one or a later one; PTX (`compute_90`) is
    compiled by the driver, for any later card. What ends with an `a` runs on its own card alone.

    Args:
        capability: The card's compute capability, `(9, 0)`.
        compiled: What TensorFlow was compiled for.
    """
    forms = [re.fullmatch(r"(sm|compute)_(\d+)(\d)(a?)f?", name) for name in compiled]
    known = [(form[1], (int(form[2]), int(form[3])), form[4]) for form in forms if form]
    card = (capability[0], capability[1])
    fits = [(form, target) for form, target, alone in known if target == card or (target < card and not alone)]
    if any(form == "sm" and target[0] == card[0] for form, target in fits):
        return "machine code"
    return "PTX" if any(form == "compute" for form, _ in fits) else "none"


def of_devices(seen: Mapping[str, Any] | str) -> Iterator[Row]:
    """Findings from the check `devices`, or from its failure."""
    if isinstance(seen, str):
        yield "devices", "broken", f"TensorFlow does not start: {seen}. Reinstall it: {INSTALL_TENSORFLOW}"
        return
    yield "devices", "ok", ", ".join(seen["devices"]) or "none"
    for number, card in enumerate(seen["cards"]):
        yield of_card(f"GPU:{number}", card, seen["build"], seen["version"])
    if not seen["cards"]:
        yield _without_gpu(bool(shutil.which("nvidia-smi")), os.environ.get("CUDA_VISIBLE_DEVICES"))
    if seen["backend"] != "tensorflow":
        rule = f"Keras runs on {seen['backend']!r}; ganlab needs 'tensorflow': {USE_TENSORFLOW}"
        yield "keras backend", "broken", rule


def of_card(subject: str, card: Mapping[str, Any], build: Mapping[str, Any], version: str) -> Row:
    """The finding about a card and the kernels that TensorFlow has for it."""
    if not card["capability"] or "cuda_compute_capabilities" not in build:
        return subject, "ok", card["name"] or "unknown"
    compiled = list(build["cuda_compute_capabilities"])
    named = f"{card['name']}, compute capability {'.'.join(map(str, card['capability']))}"
    form = kernels(card["capability"], compiled)
    if form == "machine code":
        return subject, "ok", named
    targets = ", ".join(compiled)
    if form == "PTX":
        text = f"{named}: TensorFlow {version} has PTX alone for it ({targets}), which the driver compiles when a"
        text += " kernel is first used: a fraction of a second each on an H100, maybe minutes elsewhere."
        return subject, "note", f"{text} CUDA_CACHE_MAXSIZE=4294967296 keeps them"
    rule = f"TensorFlow {version} has no kernels for it ({targets}): use another card or version"
    return subject, "broken", f"{named}: {rule}"


def of_check(check: str, found: Mapping[str, Any] | str, seen: Mapping[str, Any]) -> Iterator[Row]:
    """Findings from a check of a GPU, or from its failure.

    Args:
        check: Its name.
        found: What it found; or why there is no answer.
        seen: What the check `devices` found.
    """
    title = _TITLES[check]
    if isinstance(found, str):
        yield title, "broken", f"{found}. {_REMEDIES.get(check, _RENEW)}"
    elif check == "libraries":
        yield from of_libraries(found, seen)
    elif check == "determinism":
        yield of_determinism(found)
    elif check == "tensorfloat32":
        yield of_tensorfloat32(found, seen["cards"][0])
    elif found["off"] > _RIGHT:
        text = f"wrong: {found['off']:.1g} of its norm off in float32, where {_RIGHT:g} is right"
        yield title, "broken", f"{text}. {_REMEDIES.get(check, _RENEW)}"
    else:
        yield title, "ok", f"right to {found['off']:.1g} in float32; the first took {found['seconds']:.1f} s"


def of_libraries(found: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[Row]:
    """Findings about driver, CUDA, cuDNN and memory, by the rules of CUDA's compatibility within a major version."""
    build = seen["build"]
    built = _pair(build.get("cuda_version", ""))
    if built and "supports" in found:
        least = _of_cuda(found["supports"])
        named = f"{found['driver'] or 'version unknown'}, for CUDA up to {_dotted(least)}"
        ptx = any(kernels(c["capability"], build["cuda_compute_capabilities"]) == "PTX" for c in _known(seen))
        if least[0] < built[0]:
            yield "driver", "broken", f"{named}; TensorFlow was built with {_dotted(built)}. Update the driver"
        elif ptx and least < built:
            rule = f"PTX of CUDA {_dotted(built)} may need a driver for that version"
            yield "driver", "note", f"{named}: {rule}"
        else:
            yield "driver", "ok", named
    if built and "cuda" in found:
        version = _of_cuda(found["cuda"])
        yield "CUDA", "ok" if version[0] == built[0] else "broken", _versions(version, built)
    if build.get("cudnn_version") and "cudnn" in found:
        number, wanted = int(found["cudnn"]), _pair(build["cudnn_version"])
        step = 10_000 if number >= 90_000 else 1000
        version = number // step, number % step // 100, number % 100
        state = "ok" if version[0] == wanted[0] and version[1] >= wanted[1] else "broken"
        advice = "" if state == "ok" else f": {install('gpu')}"
        yield "cuDNN", state, f"{_versions(version, _short(build['cudnn_version']))}{advice}"
    if "memory" in found:
        free, whole = (count / 2**30 for count in found["memory"])
        text = f"{free:.1f} of {whole:.1f} GiB free"
        busy = free < 0.2 * whole
        yield "GPU memory", "note" if busy else "ok", f"{text}: other processes hold the rest" if busy else text


def of_determinism(found: Mapping[str, Any]) -> Row:
    """The finding about gradients that were computed several times."""
    if found["different"] == 1:
        return "determinism", "ok", f"a convolution's gradients have the same bits {found['times']} times"
    text = f"{found['different']} different gradients of one convolution in {found['times']} times"
    return "determinism", "broken", f"{text}, where experiment.deterministic promises one. {_RENEW}"


def of_tensorfloat32(found: Mapping[str, Any], card: Mapping[str, Any]) -> Row:
    """The finding about the speed of products in float32 and TensorFloat-32."""
    slow, fast = (found["operations"] / seconds / 1e12 for seconds in found["seconds"])
    if tuple(card["capability"] or ()) < _AMPERE:
        return "TensorFloat-32", "ok", f"not on this card; a product runs at {slow:.3g} TFLOP/s in float32"
    gain = f"a product runs at {slow:.3g} TFLOP/s in float32 and at {fast:.3g} in TensorFloat-32"
    if fast < 1.2 * slow:
        return "TensorFloat-32", "note", f"{gain}, which gains nothing here (NVIDIA_TF32_OVERRIDE=0 switches it off)"
    trade = f"{fast / slow:.1f} times as fast with an error of {found['error']:.0e}: experiment.precision"
    return "TensorFloat-32", "ok", f"{gain}, {trade} = 'tensorfloat32'"


def of_build(version: str, installed: Mapping[str, tuple[str, Sequence[str]]]) -> Iterator[Row]:
    """A finding if TensorFlow's files are not those of a build that is installed: builds overwrite each other's.

    Args:
        version: TensorFlow's own.
        installed: Version and requirements of each build that is installed, by its name.
    """
    from packaging.version import Version

    builds = {name: known for name, (known, _) in installed.items() if name.startswith("tensorflow")}
    if builds and Version(version) not in map(Version, builds.values()):
        named = " and ".join(f"{name} {known}" for name, known in builds.items())
        stale = f"its files are of {version}, left by another build, where {named} is installed"
        yield "tensorflow", "broken", f"{stale}: pip uninstall {' '.join(builds)}, then {INSTALL_TENSORFLOW}"


def of_tpu(installed: Mapping[str, tuple[str, Sequence[str]]]) -> Iterator[Row]:
    """Findings about TensorFlow's build for TPUs, if it is installed: whether its runtime fits it.

    Args:
        installed: Version and requirements of `tensorflow-tpu`, `libtpu` and `libtpu-nightly`, those that there are.
    """
    if "tensorflow-tpu" not in installed:
        return
    from packaging.requirements import Requirement

    version, requirements = installed["tensorflow-tpu"]
    named = f"tensorflow-tpu {version}"
    (wanted,) = [r for r in map(Requirement, requirements) if r.name == "libtpu"] or [Requirement("libtpu")]
    again = f"pip install '{wanted.name}{wanted.specifier}'"
    if "libtpu-nightly" in installed:
        stale = "libtpu-nightly is left from an older build and overwrites libtpu's files"
        yield "libtpu", "broken", f"{stale}: pip uninstall libtpu-nightly libtpu, then {again}"
    elif "libtpu" not in installed:
        yield "libtpu", "broken", f"not installed, and {named} needs it: {again}"
    elif not wanted.specifier.contains(installed["libtpu"][0], prereleases=True):
        yield "libtpu", "broken", f"{installed['libtpu'][0]}, and {named} needs {wanted.specifier}: {again}"
    else:
        yield "libtpu", "ok", installed["libtpu"][0]


def _without_gpu(driver: bool, visible: str | None) -> Row:
    if driver and visible is not None and visible.strip() in ("", "-1"):
        return "GPU", "note", f"none: CUDA_VISIBLE_DEVICES = {visible!r} hides them. Unset it to train on them"
    if driver:
        return "GPU", "note", f"none: this machine has an NVIDIA driver, but TensorFlow sees no GPU: {install('gpu')}"
    return "GPU", "ok", "none"


def _known(seen: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    known = "cuda_compute_capabilities" in seen["build"]
    return [card for card in seen["cards"] if card["capability"]] if known else []


def _of_cuda(number: int) -> tuple[int, ...]:
    return number // 1000, number % 1000 // 10


def _short(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _pair(version: str) -> tuple[int, ...]:
    return (*_short(version), 0)[:2] if _short(version) else ()


def _versions(found: tuple[int, ...], built: tuple[int, ...]) -> str:
    return f"{_dotted(found)} found, {_dotted(built)} built with"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
