"""The data sheets of TPUs and GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

GIB, MIB = 2**30, 2**20
Kind = Literal["tpu", "gpu", "cpu"]


@dataclass(frozen=True)
class Chip:
    """A generation of TPUs, a GPU, or this machine's CPU; rates are per chip, in units per second.

    Attributes:
        name: Its name in topologies.
        kind: What it is.
        flops: Peak floating-point operations of products, without sparsity, by number format: float32, tf32, bfloat16.
        memory: Bytes of memory.
        bandwidth: Bytes to and from that memory.
        links: Bytes that leave to other chips of a host or slice, over all links together, in one direction.
        hosted: Chips to a host.
        cores: Physical cores of such a host.
        network: Bytes that leave to other hosts, for each chip, in one direction; 0 where `links` lead there too.
        wraps: A side is closed to a ring if its length is a multiple of this; 0 for GPUs.
        hop: Seconds for a message to the next chip.
        launch: Seconds to start a kernel; 0 where the whole step is one program.
    """

    name: str
    kind: Kind
    flops: Mapping[str, float] = field(default_factory=dict)
    memory: int = 0
    bandwidth: float = 0.0
    links: float = 0.0
    hosted: int = 1
    cores: int = 1
    network: float = 0.0
    wraps: int = 0
    hop: float = 0.0
    launch: float = 0.0

    def rate(self, dtype: str, precision: str) -> float:
        """Operations per second of products of such numbers at the peak.

        XLA multiplies float32 numbers on a TPU as six products of bfloat16 if they are to be exact, and as one in
        `mixed_bfloat16`; on a GPU they are float32, and TensorFloat-32 in `mixed_bfloat16`.

        Args:
            dtype: The dtype of the factors.
            precision: The experiment's precision.
        """
        if self.kind == "tpu":
            return self.flops["bfloat16"] / (6 if precision == "float32" else 1)
        if dtype in ("bfloat16", "float16", "half"):
            return self.flops["bfloat16"]
        return self.flops["float32" if precision == "float32" else "tf32"]


def _tpu(name: str, teraflops: float, memory: int, gigabytes: float, links: float, cores: int, wraps: int) -> Chip:
    # A microsecond for a message is an assumption, of the order that is reported for such links.
    flops, rates = {"bfloat16": teraflops * 1e12}, (gigabytes * 1e9, links * 1e9)
    return Chip(name, "tpu", flops, memory, *rates, hosted=4, cores=cores, wraps=wraps, hop=1e-6)


# Peak compute, memory and its bandwidth per chip: https://cloud.google.com/tpu/docs/v2, /v3, /v4, /v5e, /v5p, /v6e.
# Links: half of the bidirectional figure of those pages; v2 and v3 have four links of 496 and 656 Gbit/s each way
# (Jouppi et al., "A domain-specific supercomputer for training deep neural networks", 2020). Cores: half of the vCPUs
# of a host of four chips, 96 (v2, v3), 240 (v4), 112 (v5e), 208 (v5p), 180 (v6e). Wrap-around links: sides as long as
# those of whole pods of v2, v3, v5e and v6e; slices of v4 and v5p whose sides are all multiples of four.
TPUS = {
    chip.name: chip
    for chip in (
        _tpu("v2", 46, 16 * GIB, 700, 248, 48, 16),
        _tpu("v3", 123, 32 * GIB, 900, 328, 48, 32),
        _tpu("v4", 275, 32 * GIB, 1228, 300, 120, 4),
        _tpu("v5e", 197, 16 * GIB, 819, 200, 56, 16),
        _tpu("v5p", 459, 95 * GIB, 2765, 600, 104, 4),
        _tpu("v6e", 918, 32 * GIB, 1640, 400, 90, 16),
    )
}


def _gpu(
    name: str,
    teraflops: tuple[float, float, float],
    mebibytes: int,
    bandwidth: float,
    links: tuple[float, float],
    hosted: int,
    cores: int,
) -> Chip:
    flops = {kind: value * 1e12 for kind, value in zip(("float32", "tf32", "bfloat16"), teraflops, strict=True)}
    inside, outside = (rate * 1e9 for rate in links)
    # 10 microseconds for a small NCCL message and 4 to launch a kernel are assumptions of the usual order.
    return Chip(
        name, "gpu", flops, mebibytes * MIB, bandwidth * 1e9, inside, hosted, cores, outside, hop=1e-5, launch=4e-6
    )


# Dense peaks: NVIDIA publishes those of tensor cores with sparsity, twice as high, in the data sheets of H100, H200
# and L4. Links are one way: half of NVLink's figure, or PCIe 4.0 of 16 lanes. The network is one adapter for each GPU,
# as in DGX systems (200 and 400 Gbit/s), and 100 Gbit/s, an assumption, for the others. Memory is what nvidia-smi
# reports, since a sheet's "80 GB" are of 2^30 bytes, of which some are reserved. Cores: half of the vCPUs of
# Google's a2-ultragpu-8g, a3-highgpu-8g, a3-ultragpu-8g and g2-standard-96, and a usual desktop's.
GPUS = {
    chip.name: chip
    for chip in (
        # A100 80 GB SXM: "NVIDIA A100 Tensor Core GPU" data sheet; 600 GB/s of NVLink.
        _gpu("a100", (19.5, 156, 312), 81920, 2039, (300, 25), 8, 48),
        # H100 SXM: "NVIDIA H100 Tensor Core GPU" data sheet; 67 teraflops of float32, 900 GB/s of NVLink.
        _gpu("h100", (67, 494.7, 989.4), 81559, 3350, (450, 50), 8, 104),
        # H200 SXM: "NVIDIA H200 Tensor Core GPU" data sheet; the H100's cores with more and faster memory.
        _gpu("h200", (67, 494.7, 989.4), 143771, 4800, (450, 50), 8, 112),
        # L4: "NVIDIA L4 Tensor Core GPU" data sheet.
        _gpu("l4", (30.3, 60, 121), 23034, 300, (32, 12.5), 8, 48),
        # RTX 4090: "NVIDIA Ada GPU architecture" white paper, appendix A; bfloat16 with sums in float32.
        _gpu("rtx4090", (82.6, 82.6, 165.2), 24564, 1008, (32, 12.5), 1, 8),
    )
}
