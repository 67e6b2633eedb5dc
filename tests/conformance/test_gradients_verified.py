"""`ganlab verify`'s check `gradients` of every architecture; the kit applies it to every constraint."""

import pytest
from ganlab_verify import Source
from ganlab_verify.truth import check

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("cpus")]

# Settings that make each small; resnet does not accept images as small as the digits.
ARCHITECTURES = {
    "mlp": (),
    "dcgan": ("architectures.dcgan.channels=8",),
    "lip_convnet": ("architectures.lip_convnet.channels=8", "architectures.lip_convnet.convolution='plain'"),
    "resnet": (
        "architectures.resnet.channels=4",
        "experiment.dataset=@datasets.two_images()",
        "datasets.two_images.side=32",
        "experiment.batch_size=8",
    ),
}


@pytest.mark.parametrize("constraint", ["gradient_penalty", "spectral_norm"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_gradients_of_an_architecture_are_those_of_the_losses(name, constraint):
    params = (
        f"experiment.architecture=@architectures.{name}()",
        f"experiment.constraints=[@constraints.{constraint}()]",
        *ARCHITECTURES[name],
    )
    row = check(Source(("quickstart",), params))
    assert row.status == "passed", row.detail
