"""Reads untrusted tar files, gzip-compressed, as a stream of plain files and folders in bounded memory.

Python's `tarfile` reads whatever a header claims (a name of gigabytes, a map of holes) before its caller can check it,
and up to 3.11.9 and 3.12.5 takes quadratic time for attributes. Here headers are checked first, and all together have a
budget. The formats are those of POSIX.1-1988 (ustar) and POSIX.1-2001 (pax), and GNU's long names.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from ganlab.errors import RunError

_BLOCK = 512
_CHUNK = 1 << 20
# Limits on extension headers, which hold long names, times and attributes: the size of one, and how many a file has;
# then the bytes that all of an archive may have, the bytes added for each file, and the cost of a record in bytes.
_LONGEST_EXTENSION, _MOST_EXTENSIONS = 1 << 16, 4
_EXTENSIONS, _EXTENSIONS_EACH, _RECORD = 1 << 20, 3 << 9, 1 << 6
# Zeros after the last file, which `tar --blocking-factor` may add.
_LONGEST_END = 1 << 20
_YEAR_10000 = 253402300800

_FILES, _FOLDER, _PAX, _PAX_GLOBAL, _GNU_NAME, _GNU_LINK = b"0\x007", b"5", b"x", b"g", b"L", b"K"
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"S": "a sparse file",
    b"M": "a part of a file",
    b"D": "a list of files",
    b"V": "a label",
}


class DamagedError(RunError):
    """A file that is not an archive, or not a complete one."""


@dataclass(frozen=True)
class Member:
    """A file or folder of an archive, as described by its header.

    Attributes:
        name: Its name, unchecked except that it contains no NUL.
        is_folder: Whether it is a folder.
        size: In bytes.
        time: Seconds since 1970, before the year 10000.
    """

    name: str
    is_folder: bool
    size: int
    time: float


class TarReader:
    """The members of an archive, one after the other.

    Read the data of each file before you ask for the next member.
    """

    def __init__(self, file: IO[bytes], called: str, pause: Callable[[], None]) -> None:
        """Takes an open archive.

        Args:
            file: The archive, at its beginning.
            called: Its name, for messages.
            pause: Called now and then; an exception from it ends the reading.
        """
        self._file, self._called, self._pause = gzip.GzipFile(fileobj=file, mode="rb"), called, pause

    def __iter__(self) -> Iterator[Member]:
        """Yields each member, and makes sure that nothing follows the end of the archive.

        Raises:
            DamagedError: The file is not an archive, is truncated, or has data after the archive's end.
            RunError: A member is neither a file nor a folder, or a header is wrong.
        """
        extensions: dict[str, bytes] = {}
        count, room = 0, _EXTENSIONS
        while (header := self._exactly(_BLOCK)) != bytes(_BLOCK):
            _check_sum(header, self._called)
            kind, size = header[156:157], self._number(header[124:136], "size")
            if kind in (_PAX, _PAX_GLOBAL, _GNU_NAME, _GNU_LINK):
                count += 1
                if count > _MOST_EXTENSIONS or size > _LONGEST_EXTENSION:
                    raise RunError(
                        f"{self._called} has a name or attributes of {size} bytes; at most "
                        f"{_LONGEST_EXTENSION} are read, {_MOST_EXTENSIONS} times a file: not unpacked."
                    )
                data = self._padded(size)
                room -= _BLOCK + size + _RECORD * data.count(b"\n")
                if room < 0:
                    raise RunError(
                        f"{self._called} has more names and attributes than {_EXTENSIONS >> 20} MiB and "
                        f"{_EXTENSIONS_EACH} bytes a file: not unpacked. Archive the runs again: ganlab runs archive."
                    )
                extensions |= self._extension(kind, data)
                continue
            yield self._member(header, kind, size, extensions)
            extensions, count = {}, 0
            room += _EXTENSIONS_EACH
        if extensions:
            raise self.damaged("a name without a file")
        self._check_end()

    def data(self, member: Member) -> Iterator[bytes]:
        """Yields a file's bytes in pieces.

        Raises:
            DamagedError: The archive ends too early.
        """
        left = member.size
        while left:
            piece = self._exactly(min(left, _CHUNK))
            left -= len(piece)
            yield piece
        self._exactly(-member.size % _BLOCK)

    def damaged(self, why: object) -> DamagedError:
        """Returns the error for a file that is not an archive, or not a complete one."""
        return DamagedError(f"{self._called} is damaged or not an archive: {why}.")

    def _exactly(self, count: int) -> bytes:
        data = self._up_to(count)
        if len(data) < count:
            raise self.damaged("it ends too early")
        return data

    def _up_to(self, count: int) -> bytes:
        self._pause()
        pieces, left = [], count
        try:
            while left and (piece := self._file.read(left)):
                pieces.append(piece)
                left -= len(piece)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.damaged(str(error).rstrip(".")) from error
        return b"".join(pieces)

    def _padded(self, size: int) -> bytes:
        data = self._exactly(size)
        self._exactly(-size % _BLOCK)
        return data

    def _check_end(self) -> None:
        end = self._up_to(_LONGEST_END)
        if len(end) < _BLOCK:
            raise self.damaged("it ends too early")
        if end.strip(b"\0") or self._up_to(1):
            raise self.damaged("there is data after its end")

    def _extension(self, kind: bytes, data: bytes) -> dict[str, bytes]:
        if kind == _GNU_NAME:
            return {"path": data.rstrip(b"\0")}
        if kind != _PAX:  # for links, which are refused, or for all members, which nothing here needs
            return {}
        records: dict[str, bytes] = {}
        data, start = data.rstrip(b"\0"), 0
        while start < len(data):
            head, space, _ = data[start : start + 20].partition(b" ")
            length = int(head) if head.isdigit() else 0
            record = data[start + len(head) + 1 : start + length]
            key, equals, value = record.partition(b"=")
            if not space or not equals or not record.endswith(b"\n") or start + length > len(data):
                raise self.damaged("attributes that cannot be read")
            records[key.decode("utf-8", "replace")] = value[:-1]
            start += length
        return records

    def _member(self, header: bytes, kind: bytes, size: int, extensions: dict[str, bytes]) -> Member:
        raw = _text(header[:100])
        if header[257:262] == b"ustar" and header[263:265] == b"00" and header[345]:
            raw = _text(header[345:500]) + b"/" + raw
        name = extensions.get("path", raw).decode("utf-8", "surrogateescape")
        if any(key.startswith("GNU.sparse") for key in extensions):
            kind = b"S"
        if kind not in (_FOLDER, b"") and kind in _FILES and not (kind == b"\0" and name.endswith("/")):
            is_folder = False
        elif kind == _FOLDER or kind == b"\0":
            is_folder = True
        else:
            what = _KINDS.get(kind, "of an unknown kind")
            raise RunError(
                f"{self._called} holds {quoted(name)}, neither a file nor a folder but {what}: not unpacked."
            )
        if "\0" in name or not name:
            raise RunError(f"{self._called} holds {quoted(name)}, which is not a name: not unpacked.")
        if "size" in extensions:
            size = self._decimal(extensions["size"], name)
        if is_folder and size:
            raise RunError(f"{self._called} holds {quoted(name)}, a folder of {size} bytes: not unpacked.")
        return Member(name, is_folder, size, self._time(header, extensions, name))

    def _time(self, header: bytes, extensions: dict[str, bytes], name: str) -> float:
        text = extensions.get("mtime")
        try:
            time = float(text.decode("ascii")) if text is not None else self._number(header[136:148], "time")
        except ValueError:
            time = math.nan
        if not 0 <= time < _YEAR_10000:
            claimed = quoted(text.decode("ascii", "replace") if text is not None else time)
            raise RunError(f"{self._called} gives {quoted(name)} the invalid time {claimed}: not unpacked.")
        return time

    def _decimal(self, text: bytes, name: str) -> int:
        if not (text.isdigit() and len(text) < 20):
            claimed = quoted(text.decode("ascii", "replace"))
            raise RunError(f"{self._called} gives {quoted(name)} the invalid size {claimed}: not unpacked.")
        return int(text)

    def _number(self, field: bytes, what: str) -> int:
        if field[0] == 0x80:  # GNU: not octal digits, but a number of base 256
            return int.from_bytes(field[1:], "big")
        text = _text(field).strip()
        if text.strip(b"01234567"):
            raise self.damaged(f"a {what} that is not a number")
        return int(text or b"0", 8)


def quoted(value: object) -> str:
    """Formats an untrusted name or value for a message: quoted, escaped, and not too long."""
    text = str(value)
    return repr(text if len(text) <= 100 else f"{text[:80]}...{text[-10:]}")


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _check_sum(header: bytes, called: str) -> None:
    text = _text(header[148:156]).strip()
    if text and not text.strip(b"01234567"):
        rest = header[:148] + b" " * 8 + header[156:]
        wrong = sum(rest) - int(text, 8)
        # Old programs added the bytes as signed ones.
        if wrong == 0 or wrong == 256 * sum(byte > 127 for byte in rest):
            return
    raise DamagedError(f"{called} is damaged or not an archive: a header whose checksum is wrong.")
