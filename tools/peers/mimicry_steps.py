"""torch-mimicry's own networks and train steps of SNGAN on 32 pixels, on random images held on the device.

    MIMICRY=FOLDER python tools/peers/mimicry_steps.py sngan --device gpu

FOLDER holds the package `torch_mimicry`, if the interpreter has none. See serving.py for the options and answers.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from peers import serving

CRITIC_STEPS, BATCH = 5, 64


def networks() -> Any:
    """The module with the networks, without the package's own imports, which are its metrics and their libraries."""
    sys.path[:0] = [os.environ["MIMICRY"]] if os.environ.get("MIMICRY") else []
    spec = importlib.util.find_spec("torch_mimicry")
    if spec is None:
        serving.refuse("torch-mimicry is not there: name the folder that holds its package with --mimicry FOLDER.")
    for name, folder in (("torch_mimicry", ""), ("torch_mimicry.nets", "nets")):
        module = types.ModuleType(name)
        module.__path__ = [str(Path(place) / folder) for place in spec.submodule_search_locations or ()]
        sys.modules[name] = module
    return importlib.import_module("torch_mimicry.nets.sngan.sngan_32")


def trainer(asked: serving.Asked) -> serving.Train:
    """Trains the networks for the requested iterations."""
    from peers.torch_eager import switch, wait

    made, device = networks(), switch(asked)
    generator, critic = made.SNGANGenerator32().to(device), made.SNGANDiscriminator32().to(device)
    of_generator, of_critic = (torch.optim.Adam(n.parameters(), 2e-4, (0.0, 0.9)) for n in (generator, critic))
    images = torch.rand(4096, 3, 32, 32, device=device) * 2 - 1
    log = types.SimpleNamespace(add_metric=lambda *given, **named: None)
    common = {"log_data": log, "device": torch.device(device), "global_step": 1}
    lower = torch.autocast(device, torch.bfloat16, enabled=asked.precision == "mixed_bfloat16")

    def train(count: int) -> None:
        for _ in range(count):
            for _ in range(CRITIC_STEPS):
                real = images[torch.randint(0, len(images), (BATCH,), device=device)], None
                with lower:
                    critic.train_step(real_batch=real, netG=generator, optD=of_critic, **common)
            with lower:
                generator.train_step(real_batch=real, netD=critic, optG=of_generator, **common)
        wait(device)

    return train


if __name__ == "__main__":
    serving.serve(trainer)
