"""The checksum of event files: CRC-32C (Castagnoli), rotated and with a constant added, as TFRecords use it.

TensorFlow checks the data of records in compiled code. This module checks the few bytes at the start of each record.
"""

from __future__ import annotations

import functools

import numpy as np

# x^32 + ..., the Castagnoli polynomial, with its lowest power in the highest bit: RFC 3720, appendix B.4.
_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
_MASK = 0xA282EAD8


def crc32c(data: bytes) -> int:
    """The checksum of some bytes, an unsigned integer of 32 bits; takes a fraction of a microsecond per byte."""
    table, register = _table_of_ints(), _ALL
    for byte in data:
        register = table[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ _ALL


def masked_crc32c(data: bytes) -> int:
    """The checksum in the form that TFRecords use."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK) & _ALL


def masked_crc32c_of_rows(data: np.ndarray) -> np.ndarray:
    """The same checksum for each row of uint8 `(n, bytes)`, all rows at once: uint32 `(n,)`."""
    table, registers = _table(), np.full(len(data), _ALL, np.uint32)
    for column in data.T:
        registers = table[(registers ^ column) & 0xFF] ^ (registers >> np.uint32(8))
    crc = ~registers
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(_MASK)


@functools.cache
def _table() -> np.ndarray:
    """How a register's lowest byte changes the others, `(256,)` uint32."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


@functools.cache
def _table_of_ints() -> list[int]:
    return [int(entry) for entry in _table()]
