"""Reads untrusted tar files, gzip-compressed, as a stream of plain files and folders in bounded memory.

Python's `tarfile` parses each header of 512 bytes. What may follow one (a name of gigabytes, attributes, a map of
holes) is read here, because `tarfile` takes whatever a header claims before its caller can check it, and up to 3.11.9
and 3.12.5 quadratic time for attributes: a second for 151 bytes that unpack to 32 kB. Here headers have a budget. The
formats are those of POSIX.1-1988 (ustar) and POSIX.1-2001 (pax), and GNU's long names.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import tarfile
import zlib
from collections.abc import Callable, Iterator
from tarfile import TarInfo
from typing import IO

from ganlab.errors import RunError

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20
# Limits on extension headers, which hold long names, times and attributes: the size of one, and how many a file has;
# then the bytes that all of an archive may have, the bytes added for each file, and the cost of a record in bytes.
_LONGEST_EXTENSION, _MOST_EXTENSIONS = 1 << 16, 4
_EXTENSIONS, _EXTENSIONS_EACH, _RECORD = 1 << 20, 3 << 9, 1 << 6
_EXTENSION_TYPES = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
# Zeros after the last file, which `tar --blocking-factor` may add.
_LONGEST_END = 1 << 20
_YEAR_10000 = 253402300800

_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}


class TarReader:
    """The members of an archive, one after the other: files, whose data is read before the next member, and folders.

    Their names are unchecked except that they contain no NUL; sizes are at least 0, and times between 1970 and 9999.
    """

    def __init__(self, file: IO[bytes], called: str, pause: Callable[[], None]) -> None:
        """Takes an open archive.

        Args:
            file: The archive, at its beginning.
            called: Its name, for messages.
            pause: Called now and then; an exception from it ends the reading.
        """
        self._file, self._called, self._pause = gzip.GzipFile(fileobj=file, mode="rb"), called, pause

    def __iter__(self) -> Iterator[TarInfo]:
        """Yields each member, and makes sure that nothing follows the end of the archive.

        Raises:
            RunError: The file is not an archive, is truncated, or has data after the archive's end; or a member is
                neither a file nor a folder, or a header is wrong.
        """
        attributes: dict[str, bytes] = {}
        count, room = 0, _EXTENSIONS
        while (block := self._exactly(_BLOCK)) != bytes(_BLOCK):
            try:
                header = TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError:
                raise self._damaged("a header is invalid") from None
            if header.type not in _EXTENSION_TYPES:
                yield self._member(header, attributes)
                attributes, count = {}, 0
                room += _EXTENSIONS_EACH
                continue
            count += 1
            if count > _MOST_EXTENSIONS or not 0 <= header.size <= _LONGEST_EXTENSION:
                raise RunError(
                    f"{self._called} has a name or attributes of {header.size} bytes; at most {_LONGEST_EXTENSION} "
                    f"are read, {_MOST_EXTENSIONS} times a file: not unpacked."
                )
            data = b"".join(self.data(header)).rstrip(b"\0")
            room -= _BLOCK + header.size + _RECORD * data.count(b"\n")
            if room < 0:
                raise RunError(
                    f"{self._called} has more names and attributes than {_EXTENSIONS >> 20} MiB and "
                    f"{_EXTENSIONS_EACH} bytes a file: not unpacked. Archive the runs again: ganlab runs archive."
                )
            if header.type == tarfile.GNUTYPE_LONGNAME:
                attributes["path"] = data
            elif header.type == tarfile.XHDTYPE:  # others are for links, which are refused, or for all members
                attributes |= self._records(data)
        if attributes:
            raise self._damaged("a name without a file")
        end = self._up_to(_LONGEST_END)
        if len(end) < _BLOCK:
            raise self._damaged("it ends too early")
        if end.strip(b"\0") or self._up_to(1):
            raise self._damaged("there is data after its end")

    def data(self, member: TarInfo) -> Iterator[bytes]:
        """Yields a file's bytes in pieces.

        Raises:
            RunError: The archive ends too early.
        """
        left = member.size
        while left:
            piece = self._exactly(min(left, _CHUNK))
            left -= len(piece)
            yield piece
        self._exactly(-member.size % _BLOCK)

    def _damaged(self, why: str) -> RunError:
        return RunError(f"{self._called} is damaged or not an archive: {why}.")

    def _exactly(self, count: int) -> bytes:
        data = self._up_to(count)
        if len(data) < count:
            raise self._damaged("it ends too early")
        return data

    def _up_to(self, count: int) -> bytes:
        self._pause()
        try:
            return self._file.read(count)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self._damaged(str(error).rstrip(".")) from error

    def _records(self, data: bytes) -> dict[str, bytes]:
        """The attributes of a pax header: each as its length in decimal digits, a space, `key=value` and a new line."""
        records: dict[str, bytes] = {}
        start = 0
        while start < len(data):
            head, space, _ = data[start : start + 20].partition(b" ")
            length = int(head) if head.isdigit() else 0
            key, equals, value = data[start + len(head) + 1 : start + length].partition(b"=")
            if not space or not equals or not value.endswith(b"\n") or start + length > len(data):
                raise self._damaged("attributes that cannot be read")
            records[key.decode("utf-8", "replace")] = value[:-1]
            start += length
        return records

    def _member(self, header: TarInfo, attributes: dict[str, bytes]) -> TarInfo:
        if "path" in attributes:
            header.name = attributes["path"].decode("utf-8", "surrogateescape")
        named = f"{self._called} holds {quoted(header.name)}"
        if any(key.startswith("GNU.sparse") for key in attributes):
            header.type = tarfile.GNUTYPE_SPARSE
        if not (header.isfile() or header.isdir()) or header.type == tarfile.GNUTYPE_SPARSE:
            what = _KINDS.get(header.type, "of an unknown kind")
            raise RunError(f"{named}, neither a file nor a folder but {what}: not unpacked.")
        if "\0" in header.name or not header.name:
            raise RunError(f"{named}, which is not a name: not unpacked.")
        header.size = self._number(header, "size", attributes.get("size", header.size), int, math.inf)
        header.mtime = self._number(header, "time", attributes.get("mtime", header.mtime), float, _YEAR_10000)
        if header.isdir() and header.size:
            raise RunError(f"{named}, a folder of {header.size} bytes: not unpacked.")
        return header

    def _number(self, header: TarInfo, what: str, given: bytes | float, kind: type, limit: float) -> int:
        """The size or time of a member, as its attribute or else its header gives it."""
        with contextlib.suppress(ValueError):
            if 0 <= (number := kind(given)) < limit:
                return number
        claimed = quoted(given.decode("ascii", "replace") if isinstance(given, bytes) else given)
        raise RunError(f"{self._called} gives {quoted(header.name)} the invalid {what} {claimed}: not unpacked.")


def quoted(value: object) -> str:
    """Formats an untrusted name or value for a message: quoted, escaped, and not too long."""
    text = str(value)
    return repr(text if len(text) <= 100 else f"{text[:80]}...{text[-10:]}")
