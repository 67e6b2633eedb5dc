"""Random weights and images that are the same in any program, and reference numbers of the packages for scores.

`rebuild_*` and `images` take numpy alone, so that tests make the very weights that the reference was computed with:

    python tests/features/published_network.py

writes published_network.json, in an environment with torch, torchvision, pytorch-fid, torch-fidelity and clean-fid. No
weights are downloaded.
"""

import base64
import io
import json
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
# Height and width: smaller and larger than the network's 299, not square, and its own.
SHAPES = [(32, 32), (45, 71), (400, 313), (299, 299)]
ROW, EVERY = 150, 29  # of resized images, the pixels that are compared
COUNT, SIDE = 24, 40  # the images of a folder
SUBSETS, SUBSET, SPLITS, NEIGHBOURS = 5, 10, 3, 3


def rebuild_array(name, shape):
    """The array of this name: a pure function of the name and the shape."""
    random = np.random.default_rng([2015, zlib.crc32(name.encode())])
    if name.endswith("running_var"):
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    if name.endswith("bn.weight"):
        return random.uniform(0.8, 1.2, shape).astype(np.float32)
    if name == "fc.weight":  # larger, so that images differ in their classes
        return random.normal(0.0, 0.2, shape).astype(np.float32)
    if len(shape) == 1:
        return random.normal(0.0, 0.1, shape).astype(np.float32)
    # He's scale keeps the sizes of activations through the layers.
    return random.normal(0.0, np.sqrt(2.0 / np.prod(shape[1:])), shape).astype(np.float32)


def image(number, height, width):
    """A smooth coloured pattern with noise, uint8 `(height, width, 3)`."""
    random = np.random.default_rng([7, number, height, width])
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    channels = []
    for _ in range(3):
        a, b, c = random.uniform(-9, 9, 3)
        channels.append(np.sin(a * x + b * y + c))
    pattern = 127.5 + 90 * np.stack(channels, axis=-1) + random.normal(0, 12, (height, width, 3))
    return np.clip(np.round(pattern), 0, 255).astype(np.uint8)


def black_and_white(number, height, width):
    """An image whose values are 0 and 255, at whose edges a bicubic filter leaves that range."""
    return np.uint8(255) * (image(number, height, width) > 127)


def folder(which):
    """The images of one of two folders, uint8 `(COUNT, SIDE, SIDE, 3)`; those of the second one are darker."""
    pictures = np.stack([image(1000 * which + number, SIDE, SIDE) for number in range(COUNT)])
    return pictures if which == 0 else (pictures * 0.8).astype(np.uint8)


def main():
    """Computes the reference."""
    import pytorch_fid.fid_score
    import pytorch_fid.inception
    import torch
    import torch_fidelity
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3
    from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
    from torch_fidelity.metric_isc import isc_features_to_metric
    from torch_fidelity.metric_kid import kid_features_to_metric
    from torch_fidelity.metric_prc import prc_features_to_metric

    torch.manual_seed(0)
    pytorch_fid.inception.load_state_dict_from_url = lambda *_, **__: states
    states = {}
    # The names and shapes are those of the package's own network; nothing is taken from ganlab.
    shapes = _shapes(FeatureExtractorInceptionV3)
    states.update({name: torch.from_numpy(rebuild_array(name, shape)) for name, shape in shapes.items()})
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "weights.pth"
        torch.save(states, path)
        names = ["2048", "logits_unbiased", "logits"]
        fidelity = FeatureExtractorInceptionV3("inception", names, feature_extractor_weights_path=str(path))
    fid = pytorch_fid.inception.InceptionV3([3]).eval()

    def of_fidelity(pictures):
        with torch.no_grad():
            return [part.numpy() for part in fidelity(torch.from_numpy(pictures.transpose(0, 3, 1, 2)))]

    def of_fid(pictures):
        with torch.no_grad():
            given = torch.from_numpy(pictures.transpose(0, 3, 1, 2).astype(np.float32) / 255)
            return fid(given)[0].squeeze(3).squeeze(2).numpy()

    reference = {
        "versions": {
            "torch": torch.__version__.partition("+")[0],
            "torch_fidelity": torch_fidelity.__version__,
            "pytorch_fid": pytorch_fid.__version__,
        },
        "arrays": len(shapes),
        "parameters": int(sum(np.prod(shape) for shape in shapes.values())),
        "images": [],
    }
    for number, (height, width) in enumerate(SHAPES):
        picture = image(number, height, width)[None]
        features, unbiased, logits = of_fidelity(picture)
        reference["images"].append(
            {
                "shape": [height, width],
                "tensorflow": _rounded(features[0, ::16]),
                "pytorch": _rounded(of_fid(picture)[0, ::16]),
                "logits_unbiased": _rounded(unbiased[0, ::8]),
                "logits": _rounded(logits[0, ::8]),
            }
        )
    generated, real = (of_fidelity(folder(which)) for which in (1, 0))
    features, reals = torch.from_numpy(generated[0]), torch.from_numpy(real[0])
    statistics = [fid_features_to_statistics(part.double()) for part in (features, reals)]
    quiet = {"verbose": False, "rng_seed": 0}
    kid = kid_features_to_metric(
        features.double(), reals.double(), kid_subsets=SUBSETS, kid_subset_size=SUBSET, **quiet
    )
    whole = kid_features_to_metric(features.double(), reals.double(), kid_subsets=1, kid_subset_size=COUNT, **quiet)
    order = np.random.default_rng(0).permutation(COUNT)
    score = isc_features_to_metric(torch.from_numpy(generated[1][order]), splits=SPLITS, shuffle=False)
    nearest = prc_features_to_metric(
        features.double(), reals.double(), prc_neighborhood=NEIGHBOURS, prc_batch_size=100, save_cpu_ram=False, **quiet
    )
    reference["torch_fidelity"] = {
        "fid": float(fid_statistics_to_metric(*statistics, False)["frechet_inception_distance"]),
        "kid_of_subsets": kid,
        "kid": whole["kernel_inception_distance_mean"],
        "isc": score,
        "prc": nearest,
    }
    activations = [of_fid(folder(which)).astype(np.float64) for which in (1, 0)]
    moments = [(part.mean(axis=0), np.cov(part, rowvar=False)) for part in activations]
    reference["pytorch_fid"] = {"fid": float(_frechet(pytorch_fid.fid_score, *moments))}
    reference["clean_fid"] = clean_fid()
    reference["torch_files"] = _small_files(torch)
    (HERE / "published_network.json").write_text(json.dumps(reference, indent=1) + "\n")


def clean_fid():
    """The version of clean-fid, and pixels of images that it resizes."""
    from importlib.metadata import version

    from cleanfid.resize import build_resizer

    resize, found = build_resizer("clean"), {"version": version("clean-fid")}
    for make in (image, black_and_white):
        found[make.__name__] = [
            _rounded(resize(make(number, *shape))[ROW, ::EVERY].ravel()) for number, shape in enumerate(SHAPES)
        ]
    return found


def _shapes(network):
    """The shapes of the state dict, found by a network that is refused an empty one."""
    import torch

    found = {}

    def keep(self, states):
        found.update({name: tuple(value.shape) for name, value in self.state_dict().items() if value.ndim})
        raise InterruptedError

    with tempfile.TemporaryDirectory() as place:
        torch.save({}, Path(place) / "empty.pth")
        original, network.load_state_dict = network.load_state_dict, keep
        try:
            network("inception", ["2048"], feature_extractor_weights_path=str(Path(place) / "empty.pth"))
        except InterruptedError:
            pass
        finally:
            network.load_state_dict = original
    return found


def _frechet(module, *moments):
    """pytorch-fid's distance; scipy 1.18 has no `disp` any more, which it passes to the root of a matrix."""
    import scipy.linalg

    original = scipy.linalg.sqrtm
    module.linalg.sqrtm = lambda a, disp=True: original(a) if disp else (original(a), 0.0)
    try:
        (mean, covariance), (mean_r, covariance_r) = moments
        return module.calculate_frechet_distance(mean, covariance, mean_r, covariance_r)
    finally:
        module.linalg.sqrtm = original


def _small_files(torch):
    """Files of torch.save: a state dict with a shared storage, a parameter and a counter, in both formats."""
    from collections import OrderedDict

    shared = torch.arange(10, dtype=torch.float32)
    states = OrderedDict(a=shared[4:].reshape(2, 3), b=torch.nn.Parameter(shared[:2].double()), n=torch.tensor(5))
    states._metadata = {"": {"version": 2}}
    files = {}
    cases = {
        "zip": (states, True),
        "old": (states, False),
        "strided": (OrderedDict(a=shared[4:].reshape(3, 2).T), True),
    }
    for name, (content, zipped) in cases.items():
        file = io.BytesIO()
        torch.save(content, file, _use_new_zipfile_serialization=zipped)
        files[name] = base64.b64encode(file.getvalue()).decode()
    return files


def _rounded(values):
    return [float(f"{value:.7g}") for value in values]


if __name__ == "__main__":
    sys.exit(main())
