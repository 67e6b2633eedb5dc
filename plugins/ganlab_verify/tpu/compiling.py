"""Compiles a StableHLO module for a TPU with libtpu: a script for the environment that has JAX and nothing of ganlab.

No TPU is needed: libtpu describes the requested topology and compiles for it. `main` documents how to call the script.
"""

from __future__ import annotations

import gc
import json
import math
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

# Before JAX is imported. The first keeps JAX off a TPU that this machine may have; the others keep libtpu from looking
# for one, from writing logs, and from refusing to be loaded by two processes at a time.
os.environ.update(
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    TPU_WORKER_HOSTNAMES="localhost",
    TPU_LOG_DIR="disabled",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jax._src.lib.mlir import ir
from jax.experimental import topologies

_ALL_REDUCE = re.compile(r"= (?P<shapes>.*?) all-reduce(?:-start)?\(")
_SHAPE = re.compile(r"([a-z]+)(\d*)\w*\[([\d,]*)\]")
_PRODUCTS = ("stablehlo.convolution", "stablehlo.dot", "stablehlo.dot_general")


def find_devices(topology: str, configuration: str | None, cores: int) -> tuple[list[Any], str]:
    """The cores of a topology, or none and libtpu's message."""
    chosen = {} if configuration is None else {"chip_config_name": configuration}
    try:
        devices = topologies.get_topology_desc(platform="tpu", topology_name=topology, **chosen).devices
    except jax.errors.JaxRuntimeError as error:
        return [], _message(error)
    if len(devices) != cores:
        return [], f"it has {len(devices)} cores and {cores} were expected"
    return list(devices), ""


def compile_module(
    module: bytes, topology: str, configuration: str | None, cores: int, optimize: bool = True
) -> dict[str, Any]:
    """Compiles for every core of a topology.

    Args:
        module: Serialized StableHLO.
        topology: libtpu's name for it, `v5e:2x2`.
        configuration: libtpu's name for the view of its chips, or None.
        cores: How many cores it must have.
        optimize: Whether to optimize as for a run, and not as little as the compiler can.

    Returns:
        `outcome` is "compiled", with everything that was measured; "refused", with the compiler's `message`; or
        "no topology", with libtpu's `message`.
    """
    devices, message = find_devices(topology, configuration, cores)
    if not devices:
        return {"outcome": "no topology", "message": message}
    with mlir.make_ir_context():
        parsed = ir.Module.parse(module)
        lowered = _prepare(parsed)
    jax.config.update("jax_optimization_level", "UNKNOWN" if optimize else "O0")
    options = compiler.get_compile_options(
        num_replicas=cores, num_partitions=1, device_assignment=np.arange(cores).reshape(cores, 1)
    )
    started = time.monotonic()
    try:
        executable = devices[0].client.compile(
            parsed, executable_devices=_jax.DeviceList(tuple(devices)), compile_options=options
        )
    except jax.errors.JaxRuntimeError as error:
        return {"outcome": "refused", "message": _message(error), **lowered}
    text = "\n".join(part.to_string() for part in executable.hlo_modules())
    costs = executable.cost_analysis()
    return {
        "outcome": "compiled",
        "device": devices[0].device_kind,
        "seconds": round(time.monotonic() - started, 1),
        "memory": _memory(executable.get_compiled_memory_stats()),
        "flops": float(costs["flops"]),
        "bytes_accessed": float(costs["bytes accessed"]),
        "compiled_all_reduces": _all_reduces(text),
        **lowered,
    }


def _prepare(module: Any) -> dict[str, Any]:
    """Prepares a module for libtpu, and counts its all-reduces and float32 products."""
    copies, sizes, products = [], [], []

    def visit(operation: Any) -> Any:
        if operation.name == "mhlo.copy":  # from TensorFlow; libtpu does not know it, and it changes no value
            operation.result.replace_all_uses_with(operation.operands[0])
            copies.append(operation)
        elif operation.name == "stablehlo.all_reduce":
            sizes.append(sum(_size(operand.type) for operand in operation.operands))
        elif operation.name in _PRODUCTS and _is_float32(operation):
            products.append(_precision(operation) == "default")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for copy in copies:
        copy.erase()
    return {
        "all_reduces": {"count": len(sizes), "bytes": sum(sizes)},
        "float32_products": {"count": len(products), "in_bfloat16": sum(products)},
    }


def _is_float32(operation: Any) -> bool:
    return all(str(operand.type.element_type) == "f32" for operand in operation.operands)


def _precision(operation: Any) -> str:
    configured = str(operation.attributes["precision_config"]) if "precision_config" in operation.attributes else ""
    return "more" if "HIGH" in configured else "default"


def _size(kind: Any) -> int:
    return math.prod(kind.shape) * max(1, kind.element_type.width // 8)


def _all_reduces(text: str) -> dict[str, int]:
    """Counts the all-reduces of a compiled program, each of which may carry several tensors."""
    reduced = [match["shapes"] for match in _ALL_REDUCE.finditer(text)]
    total = 0
    for shapes in reduced:
        for kind, bits, dimensions in _SHAPE.findall(shapes):
            width = 1 if kind == "pred" else max(1, int(bits) // 8)
            total += width * math.prod(int(n) for n in dimensions.split(",") if n)
    return {"count": len(reduced), "bytes": total}


def _memory(stats: Any) -> dict[str, int]:
    parts = {
        "arguments": stats.argument_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "shared": stats.alias_size_in_bytes,
        "temporary": stats.temp_size_in_bytes,
        "program": stats.generated_code_size_in_bytes,
    }
    # Results that reuse the memory of arguments (updated variables) are counted in both.
    return {**parts, "total": sum(parts.values()) - 2 * parts["shared"]}


def _message(error: Exception) -> str:
    return str(error).partition("Suspected Python Code Location")[0].strip()


def main() -> None:
    """Reads `{"module": path, "result": path, "topology": ..., "configuration": ..., "cores": n}` from standard input.

    The result of `compile_module` is written as JSON to a file, because libtpu may print to standard output. With
    `"topologies": [{"topology": ..., "configuration": ..., "cores": n}, ...]` in the place of all but the result it is
    libtpu's message for each of them, empty if it exists.
    """
    request = json.load(sys.stdin)
    result = Path(request.pop("result"))
    if "topologies" in request:
        answer: Any = [find_devices(**one)[1] for one in request["topologies"]]
    else:
        answer = compile_module(Path(request.pop("module")).read_bytes(), **request)
    result.write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
    gc.freeze()  # the process then ends a second earlier
