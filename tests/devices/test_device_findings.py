"""What reports about devices mean: cards of every generation, versions, wrong numbers."""

import pytest
from ganlab_devices import findings
from ganlab_devices.findings import of_card, of_check, of_devices, of_tpu

# TensorFlow 2.21's wheel: `tf.sysconfig.get_build_info()`.
COMPILED = ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"]
BUILD = {"cuda_version": "12.5.1", "cudnn_version": "9", "cuda_compute_capabilities": COMPILED}


def seen(capability=(8, 0), **changes):
    cards = [{"name": "NVIDIA X", "capability": list(capability)}] if capability else []
    devices = ["CPU:0", "GPU:0"] if capability else ["CPU:0"]
    return {"devices": devices, "backend": "tensorflow", "version": "2.21.0", "build": BUILD, "cards": cards} | changes


@pytest.mark.parametrize(
    ("card", "capability", "form", "state"),
    [
        ("GTX 980", (5, 2), "none", "broken"),
        ("P100", (6, 0), "machine code", "ok"),
        ("GTX 1080", (6, 1), "machine code", "ok"),
        ("V100", (7, 0), "machine code", "ok"),
        ("T4", (7, 5), "machine code", "ok"),
        ("A100", (8, 0), "machine code", "ok"),
        ("RTX 3090", (8, 6), "machine code", "ok"),
        ("L4", (8, 9), "machine code", "ok"),
        ("H100", (9, 0), "PTX", "note"),
        ("B200", (10, 0), "PTX", "note"),
        ("RTX 5090", (12, 0), "PTX", "note"),
    ],
)
def test_kernels_of_a_card(card, capability, form, state):
    assert findings.kernels(capability, COMPILED) == form
    subject, found, detail = of_card("GPU:0", {"name": card, "capability": capability}, BUILD, "2.21.0")
    assert (subject, found) == ("GPU:0", state)
    assert detail.startswith(f"{card}, compute capability {capability[0]}.{capability[1]}")
    assert ("CUDA_CACHE_MAXSIZE" in detail) == (form == "PTX")


def test_machine_code_of_another_major_version_or_a_later_minor_one_does_not_run():
    assert findings.kernels((8, 0), ["sm_86", "sm_90"]) == "none"
    assert findings.kernels((9, 0), ["sm_90a"]) == "machine code"
    assert findings.kernels((9, 1), ["sm_90a", "compute_90a"]) == "none"
    assert findings.kernels((12, 0), ["sm_100", "compute_100", "new_style"]) == "PTX"


def test_a_card_that_tells_nothing_is_named():
    assert of_card("GPU:0", {"name": "gfx90a", "capability": None}, BUILD, "2.21.0") == ("GPU:0", "ok", "gfx90a")
    assert of_card("GPU:0", {"name": "X", "capability": [8, 0]}, {}, "2.21.0") == ("GPU:0", "ok", "X")


@pytest.mark.parametrize(
    ("driver", "visible", "expected"),
    [
        (None, None, ("GPU", "ok", "none")),
        ("/usr/bin/nvidia-smi", None, ("GPU", "note", "none: this machine has an NVIDIA driver, but TensorFlow sees")),
        ("/usr/bin/nvidia-smi", "-1", ("GPU", "note", "none: CUDA_VISIBLE_DEVICES = '-1' hides them. Unset it")),
        ("/usr/bin/nvidia-smi", "", ("GPU", "note", "none: CUDA_VISIBLE_DEVICES = '' hides them. Unset it")),
        ("/usr/bin/nvidia-smi", "1", ("GPU", "note", "none: this machine has an NVIDIA driver, but TensorFlow sees")),
    ],
)
def test_a_machine_without_a_gpu_has_one_line_about_it(monkeypatch, driver, visible, expected):
    monkeypatch.setattr("shutil.which", lambda name: driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    devices, gpu = of_devices(seen(None))
    assert devices == ("devices", "ok", "CPU:0")
    assert gpu[:2] == expected[:2]
    assert gpu[2].startswith(expected[2])


def test_another_backend_and_a_tensorflow_that_does_not_start_are_broken():
    *_, row = of_devices(seen(backend="jax"))
    assert row[:2] == ("keras backend", "broken")
    assert "Keras runs on 'jax'; ganlab needs 'tensorflow': unset KERAS_BACKEND" in row[2]
    ((subject, state, detail),) = of_devices("ImportError: libcudart.so.12")
    assert (subject, state) == ("devices", "broken")
    assert detail.startswith("TensorFlow does not start: ImportError: libcudart.so.12. Reinstall it: pip install")


def libraries(capability=(8, 0), **found):
    given = {
        "driver": "550.54.15",
        "supports": 12040,
        "cuda": 12050,
        "cudnn": 90300,
        "memory": [70 * 2**30, 80 * 2**30],
    }
    return {row[0]: row[1:] for row in of_check("libraries", given | found, seen(capability))}


def test_versions_that_fit_are_ok():
    assert libraries() == {
        "driver": ("ok", "550.54.15, for CUDA up to 12.4"),
        "CUDA": ("ok", "12.5 found, 12.5 built with"),
        "cuDNN": ("ok", "9.3.0 found, 9 built with"),
        "GPU memory": ("ok", "70.0 of 80.0 GiB free"),
    }


@pytest.mark.parametrize(
    ("change", "capability", "subject", "state", "text"),
    [
        ({"supports": 11080}, (8, 0), "driver", "broken", "CUDA up to 11.8; TensorFlow was built with 12.5. Update"),
        # Machine code runs on any driver of its major version; a later toolkit's PTX may not be read.
        ({"supports": 12020}, (8, 9), "driver", "ok", "for CUDA up to 12.2"),
        ({"supports": 12020}, (9, 0), "driver", "note", "for CUDA up to 12.2: PTX of CUDA 12.5 may need a driver for"),
        ({"supports": 13000, "driver": ""}, (9, 0), "driver", "ok", "version unknown, for CUDA up to 13.0"),
        ({"cuda": 11080}, (8, 0), "CUDA", "broken", "11.8 found, 12.5 built with"),
        ({"cudnn": 8907}, (8, 0), "cuDNN", "broken", "8.9.7 found, 9 built with: pip install"),
        ({"cudnn": 91002}, (8, 0), "cuDNN", "ok", "9.10.2 found, 9 built with"),
        ({"memory": [2**30, 80 * 2**30]}, (8, 0), "GPU memory", "note", "1.0 of 80.0 GiB free: other processes hold"),
    ],
)
def test_versions_that_do_not_fit(change, capability, subject, state, text):
    found, detail = libraries(capability, **change)[subject]
    assert found == state
    assert text in detail


def test_versions_that_are_not_known_are_left_out():
    assert list(of_check("libraries", {"driver": ""}, seen())) == []


@pytest.mark.parametrize("check", ["product", "convolution", "xla"])
def test_numbers_are_right_in_float32_and_wrong_in_tensorfloat32(check):
    ((title, state, detail),) = of_check(check, {"off": 2.9e-7, "seconds": 0.41}, seen())
    assert (state, detail) == ("ok", "right to 3e-07 in float32; the first took 0.4 s")
    ((again, state, detail),) = of_check(check, {"off": 3.1e-4, "seconds": 0.41}, seen())
    assert (again, state) == (title, "broken")
    assert detail.startswith("wrong: 0.0003 of its norm off in float32, where 1e-05 is right. ")


def test_a_check_without_an_answer_is_broken_with_its_remedy():
    ((title, state, detail),) = of_check("xla", "it died of SIGABRT", seen())
    assert (title, state) == ("XLA", "broken")
    assert detail.startswith("it died of SIGABRT. It needs ptxas and libdevice: pip install")
    assert "experiment.jit = 'off'" in detail


def test_gradients_that_differ_are_broken():
    assert list(of_check("determinism", {"times": 5, "different": 1}, seen())) == [
        ("determinism", "ok", "a convolution's gradients have the same bits 5 times")
    ]
    ((_, state, detail),) = of_check("determinism", {"times": 5, "different": 2}, seen())
    assert state == "broken"
    assert detail.startswith("2 different gradients of one convolution in 5 times, where experiment.deterministic")


@pytest.mark.parametrize(
    ("capability", "seconds", "state", "text"),
    [
        # 2e12 operations: 2.0 s are 1 TFLOP/s, 0.25 s are 8.
        ((9, 0), [2.0, 0.25], "ok", "at 1 TFLOP/s in float32 and at 8 in TensorFloat-32, 8.0 times as fast with an"),
        ((8, 9), [2.0, 2.0], "note", "which gains nothing here (NVIDIA_TF32_OVERRIDE=0"),
        ((7, 5), [2.0, 2.0], "ok", "not on this card; a product runs at 1 TFLOP/s in float32"),
    ],
)
def test_what_tensorfloat32_gains(capability, seconds, state, text):
    found = {"seconds": seconds, "operations": 2e12, "error": 2.9e-4}
    ((_, got, detail),) = of_check("tensorfloat32", found, seen(capability))
    assert got == state
    assert text in detail
    assert ("experiment.precision = 'tensorfloat32'" in detail) == (text.startswith("at 1"))


TPU = {"tensorflow-tpu": ("2.20.0", ["libtpu~=0.0.14", "keras>=3.5"])}


@pytest.mark.parametrize(
    ("installed", "state", "text"),
    [
        ({"libtpu": ("0.0.17", [])}, "ok", "0.0.17"),
        ({"libtpu": ("0.0.2", [])}, "broken", "0.0.2, and tensorflow-tpu 2.20.0 needs ~=0.0.14: pip install 'libtpu~="),
        ({}, "broken", "not installed, and tensorflow-tpu 2.20.0 needs it: pip install 'libtpu~=0.0.14'"),
        (
            {"libtpu": ("0.0.17", []), "libtpu-nightly": ("0.1.dev2024", [])},
            "broken",
            "libtpu-nightly is left from an older build and overwrites libtpu's files: pip uninstall",
        ),
    ],
)
def test_a_runtime_that_does_not_fit_the_build_for_tpus(installed, state, text):
    ((subject, found, detail),) = of_tpu(TPU | installed)
    assert (subject, found) == ("libtpu", state)
    assert detail.startswith(text)


def test_a_runtime_alone_is_nobodys_problem():
    assert list(of_tpu({"libtpu": ("0.0.51", [])})) == []


def test_files_of_another_build_are_broken():
    installed = {"tensorflow-tpu": ("2.20.0", []), "libtpu": ("0.0.17", [])}
    assert list(findings.of_build("2.20.0", installed)) == []
    assert list(findings.of_build("2.21.0-rc1", {"tensorflow": ("2.21.0rc1", [])})) == []
    assert list(findings.of_build("2.21.0", {})) == []
    ((subject, state, detail),) = findings.of_build("2.21.0", installed)
    assert (subject, state) == ("tensorflow", "broken")
    assert detail.startswith("its files are of 2.21.0, left by another build, where tensorflow-tpu 2.20.0 is installed")
