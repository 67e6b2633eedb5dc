"""Names of topologies."""

import pytest
from ganlab_verify.tpu.chips import topology

from ganlab.errors import ConfigError


# Cores as Google counts them for TPU VMs: v2-8 and v3-8 have four chips; v4 and later show a device for each chip.
@pytest.mark.parametrize(
    ("name", "cores", "gibibytes"),
    [
        ("v2:2x2", 8, 8),
        ("v3:4x4", 32, 16),
        ("v4:2x2x1", 4, 32),
        ("v5e:2x2", 4, 16),
        ("v5e:16x16", 256, 16),
        ("v5p:2x2x2", 8, 95),
        ("v6e:1x1", 1, 32),
    ],
)
def test_cores_and_their_memory(name, cores, gibibytes):
    read = topology(name)
    assert (read.name, read.cores, read.chip.memory) == (name, cores, gibibytes * 2**30)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v5:2x2", "Unknown TPU 'v5' in the topology 'v5:2x2'. Did you mean 'v5"),
        ("2x2", "Known: v2, v3, v4, v5e, v5p, v6e."),
        ("v5e", "2 whole numbers of at least 1 with an x between. Write for example 'v5e:2x2'."),
        ("v5e:0x2", "2 whole numbers"),
        ("v5e:2x2x1", "2 whole numbers"),
        ("v5e:2x-2", "2 whole numbers"),
        ("v4:2x2", "Write for example 'v4:2x2x1'."),
    ],
)
def test_other_names_are_refused(name, message):
    with pytest.raises(ConfigError) as caught:
        topology(name)
    assert message in str(caught.value)
    assert repr(name) in str(caught.value)
