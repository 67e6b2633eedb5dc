"""Pictures of samples for a page of one file: the newest of each run, small enough to be embedded."""

from __future__ import annotations

import base64
import io
import warnings
from pathlib import Path

from ganlab.errors import RunError
from ganlab.files import is_name, read_inside

# Bytes of one picture at most, and of all pictures of a page together, before they are written as text, a third more.
_MOST, _TOTAL = 225_000, 1_800_000
# A run's directory is data, perhaps from a stranger: a larger file is not a grid of samples.
_READABLE = 50_000_000
_PNG = b"\x89PNG\r\n\x1a\n"
_QUALITY = 82
_SMALLEST = 48


def newest(run: Path) -> Path | None:
    """A run's newest picture of samples."""
    pictures = (path for path in (run / "samples").glob("step-*.png") if is_name(path.name))
    return max(pictures, key=lambda path: path.stem, default=None)


def step_of(picture: Path) -> int | None:
    """The step in a picture's name."""
    digits = picture.stem.removeprefix("step-")
    return int(digits) if digits.isascii() and digits.isdigit() else None


def embedded(picture: Path, *, of: int = 1) -> str | None:
    """A picture as a `data:` address.

    Args:
        picture: A PNG file in the folder `samples` of a run.
        of: How many pictures share the page. Each gets its share of 1.8 MB, 225 kB at most; one of more bytes is
            made smaller.

    Returns:
        The address, or None if the file is not a readable picture.
    """
    room = min(_MOST, _TOTAL // of)
    try:
        data = read_inside(picture.parents[1], picture.relative_to(picture.parents[1]), most=_READABLE)
    except (OSError, RunError):
        return None
    if not data.startswith(_PNG):
        return None
    if len(data) <= room:
        return _address("png", data)
    smaller = _smaller(data, room)
    return _address("jpeg", smaller) if smaller else None


def _smaller(data: bytes, room: int) -> bytes | None:
    """Encodes a PNG as a JPEG, halved until it fits into `room` bytes or is too small to halve; None if broken."""
    from PIL import Image  # a dependency of Matplotlib

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=["PNG"]).convert("RGB")
    # Pillow raises a dozen kinds of errors at files that are broken, or made to be.
    except Exception:
        return None
    while True:
        encoded = io.BytesIO()
        image.save(encoded, "JPEG", quality=_QUALITY)
        if encoded.tell() <= room or min(image.size) < 2 * _SMALLEST:
            return encoded.getvalue()
        image = image.reduce(2)


def _address(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
