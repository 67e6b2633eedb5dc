"""Files of named arrays with facts about them: safetensors and JSON. Does not import TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors

from ganlab.errors import RunError
from ganlab.files import line

ENDINGS = (".safetensors", ".json")
MOST = 1 << 26  # bytes of a file or an answer; a passport has a hundredth of that
_HEADER, _NUMBERS = 1 << 22, 1 << 22
_DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

Arrays = dict[str, np.ndarray]


def encode(arrays: Arrays, facts: Mapping[str, Any], ending: str) -> bytes:
    """The bytes of a file; in JSON arrays are nested lists, in safetensors each fact is a text in JSON."""
    if ending != ENDINGS[0]:
        lists = {name: array.tolist() for name, array in arrays.items()}
        return json.dumps({"metadata": facts, "tensors": lists}, indent=1).encode()
    header: dict[str, Any] = {"__metadata__": {name: json.dumps(fact) for name, fact in facts.items()}}
    body = b""
    for name, array in arrays.items():
        # By hand: the library's order of metadata is random, and a passport has the same bytes each time.
        dtype, start = array.dtype.newbyteorder("<").str, len(body)
        body += np.ascontiguousarray(array, dtype).tobytes()
        header[name] = {"dtype": _NAMES[dtype], "shape": array.shape, "data_offsets": [start, len(body)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays begin at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text + body


def decode(data: bytes, what: str) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the facts in bytes, which may be anybody's; `what` names them in messages.

    Raises:
        RunError: They are neither safetensors nor JSON of arrays, or too large.
    """
    try:
        if not 0 < len(data) <= MOST:
            raise ValueError(f"it has more than {MOST >> 20} MiB" if data else "it is empty")
        # The first eight bytes of safetensors are a length, of which the last ones are zero.
        arrays, facts = (_from_safetensors if b"\0" in data[:8] else _from_json)(data)
        if sum(array.size for array in arrays.values()) > _NUMBERS:
            raise ValueError(f"it has more than {_NUMBERS:,} numbers")
        return arrays, facts
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise RunError(
            f"{line(what)} holds no arrays that can be read: {line(reason):.300}. It must be a safetensors file, or "
            'JSON {"tensors": {NAME: nested lists of numbers}}.'
        ) from None


def _from_json(data: bytes) -> tuple[Arrays, dict[str, Any]]:
    content = json.loads(data)
    arrays = {name: np.array(values) for name, values in content["tensors"].items()}
    wrong = [name for name, array in arrays.items() if array.dtype.kind not in "if"]
    if wrong:
        raise ValueError(f"{wrong[0]!r:.80} is not made of numbers")
    return arrays, dict(content.get("metadata", {}))


def _from_safetensors(data: bytes) -> tuple[Arrays, dict[str, Any]]:
    length = int.from_bytes(data[:8], "little")
    if length > min(_HEADER, len(data) - 8):
        raise ValueError(f"its header would have {length:,} bytes")
    try:
        arrays = {
            name: np.frombuffer(entry["data"], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in safetensors.deserialize(data)
        }
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from None
    facts = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
    return arrays, {name: json.loads(text) for name, text in facts.items()}
