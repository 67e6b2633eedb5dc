"""A folder of pictures, decoded as they are needed."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Annotated, Any

import ganlab
from ganlab import fingerprints
from ganlab.bounds import Ge, Local, Lt
from ganlab.files import line
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.broken_files import suspicious, undecodable
from ganlab_builtin.datasets.checks import existing, refusal
from ganlab_builtin.datasets.pixels import MOST_PIXELS, decoded, from_bytes, square

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif")
_PARALLEL = 16  # files in work at a time; more were not faster


class ImageFolder(ganlab.Dataset):
    """Every PNG, JPEG, BMP and GIF file under a folder, cropped and resized to squares.

    Files in subfolders are included, and numbered in the order of their relative paths; hidden ones are left out. The
    central square of each is resized with antialiased bilinear interpolation, in [-1, 1]. A GIF gives its first frame,
    transparency is dropped, and a camera's orientation tag (EXIF) is not applied.

    If every file lies in a subfolder and there are at least two of these, they are the classes, in the order of their
    names. If a few files do not, there are none, and a warning names these files.

    Attributes:
        skipped: The number of files that were left out because they cannot be decoded.
        names: The files' paths below the folder, in order, as bytes.
        class_names: The names of the subfolders that are the classes; none without classes.
        filter: The method of `tf.image.resize` that images are resized with.
    """

    filter = "bilinear"

    def __init__(
        self,
        *,
        path: Annotated[str, Local()],
        size: Annotated[int, Ge(1), Lt(2**31)] | None = 64,
        channels: int = 3,
        skip_broken: bool = False,
    ) -> None:
        """Lists the files, and refuses a folder with a truncated one.

        Args:
            path: The folder; a relative path is from the working directory.
            size: The side of the images in pixels; None for that of the first one's central square.
            channels: 3 for colour, where grey files get three equal channels, or 1 for grey, where colours become
                their luma (ITU-R BT.601).
            skip_broken: Whether to leave out files that cannot be decoded, with a warning that counts them. For that
                every file is decoded before training. Otherwise only the first and last bytes of each are checked, and
                a file that is broken inside stops the run that reads it.

        Raises:
            ConfigError: The folder does not exist or has no image; a file is broken and is not to be skipped; or `size`
                or `channels` is invalid.
        """
        if channels not in (1, 3):
            raise refusal("image_folder", "channels", channels, "must be 1 (grey) or 3 (colour).")
        root = existing("image_folder", "path", path, "folder")
        files = sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if _is_image(file, root))
        if not files:
            raise refusal("image_folder", "path", path, f"has no image: no {', '.join(_SUFFIXES)} file in or below it.")
        # Names are bytes to the operating system, and need not be valid text.
        self._root = os.fsencode(root) + b"/"
        side = _side_of(root / files[0]) if size is None else size
        self.sample_shape = (side, side, channels)
        broken = self._broken(files, every=skip_broken)
        self.skipped = len(broken)
        if broken:
            problem = f"{self.skipped} of {len(files)} files cannot be decoded: {_listed(broken)}."
            if not skip_broken:
                remedy = (
                    "Fix or remove them, or leave them out: datasets.image_folder.skip_broken = True, for "
                    "'ganlab dataset make' --skip-broken."
                )
                raise refusal("image_folder", "path", path, f"has broken files: {problem} {remedy}")
            if self.skipped == len(files):
                raise refusal("image_folder", "path", path, f"has no file to train on: {problem}")
            warnings.warn(f"datasets.image_folder.path = {path!r} without broken files: {problem}", stacklevel=2)
            files = [name for name in files if name not in broken]
        self.names = [os.fsencode(name) for name in files]
        self.size = len(files)
        tops = [name.partition("/")[0] if "/" in name else "" for name in files]
        places = {name: place for place, name in enumerate(sorted(set(tops)))}
        self._labels = [places[top] for top in tops]
        self.classes = len(places) if len(places) > 1 and all(tops) else None
        self.class_names = list(places) if self.classes else []
        outside = {name for name, top in zip(files, tops, strict=True) if not top}
        if 0 < len(outside) < len(files) / 2 and len(places) > 2:
            warnings.warn(
                f"datasets.image_folder.path = {path!r} has no classes, although it has {len(places) - 1} subfolders: "
                f"not every image is in one of them, {_listed(outside)}.",
                stacklevel=2,
            )

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The images with these numbers, `(n, size, size, channels)` float32; the seed is not used.

        Raises:
            tf.errors.InvalidArgumentError: A file cannot be read or decoded; the message names it.
        """
        count = numbers.shape[0]
        paths = tf.strings.join([self._root, tf.gather(tf.constant(self.names), numbers)])
        # A decoding error does not name its file. So failed ones are left out, the positions of the others are kept,
        # and an extra row at the end makes sure that there is a batch even if all failed.
        read = tf.data.Dataset.from_tensor_slices(paths).enumerate()
        read = read.map(lambda at, file: (at, self._image(file)), num_parallel_calls=_PARALLEL).ignore_errors()
        end = tf.data.Dataset.from_tensors((tf.constant(-1, tf.int64), tf.zeros(self.sample_shape)))
        positions, images = read.concatenate(end).batch(count + 1).get_single_element()
        came = tf.reduce_any(tf.range(count, dtype=tf.int64)[:, None] == positions[None, :], axis=1)
        failed = tf.boolean_mask(paths, ~came)
        message = tf.strings.join(
            [
                "datasets.image_folder: cannot read or decode ",
                tf.strings.reduce_join(failed[:3], separator=", "),
                f". Each must be a whole PNG, JPEG, BMP or GIF file of at most {MOST_PIXELS:,} pixels; fix it, take it "
                "out of the folder, or set datasets.image_folder.skip_broken = True.",
            ]
        )
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(came), [message])]):
            return tf.ensure_shape(images[:count], (count, *self.sample_shape))

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The places of the images' subfolders among their sorted names, `(n,)` int64."""
        return tf.gather(tf.constant(self._labels, tf.int64), numbers)

    def fingerprint(self) -> dict[str, Any]:
        """The files' names, and hashes of their sizes and of bytes of them (`ganlab.fingerprints.of_files`)."""
        return fingerprints.of_files(self._root, self.names)

    def _broken(self, names: list[str], *, every: bool) -> set[str]:
        paths = {self._root + os.fsencode(name): name for name in names}
        tried = [path for path in paths if every or suspicious(path)]
        return {paths[path] for path in undecodable(tried, self._image)}

    def _image(self, path: tf.Tensor) -> tf.Tensor:
        size, _, channels = self.sample_shape
        # With the file's own channels, because requesting others is an error for some formats (BMP).
        data = tf.io.read_file(path)
        pixels = _coloured(decoded(data), data)
        grey = tf.shape(pixels)[-1] < 3  # grey, or grey and alpha
        if channels == 3:
            pixels = tf.cond(grey, lambda: tf.repeat(pixels[..., :1], 3, axis=-1), lambda: pixels[..., :3])
        else:
            pixels = tf.cond(grey, lambda: pixels[..., :1], lambda: tf.image.rgb_to_grayscale(pixels[..., :3]))
        return tf.ensure_shape(square(from_bytes(pixels), size, self.filter), self.sample_shape)


def _coloured(pixels: tf.Tensor, data: tf.Tensor) -> tf.Tensor:
    """The pixels; of a BMP file with a palette its colours, of which TensorFlow gives the numbers."""

    def looked_up() -> tf.Tensor:
        ends, header = tf.unstack(tf.io.decode_raw(tf.strings.substr(data, 10, 8), tf.int32), 2)
        palette = tf.io.decode_raw(tf.strings.substr(data, 14 + header, ends - 14 - header), tf.uint8)
        return tf.gather(tf.reshape(palette, (-1, 4))[:, 2::-1], tf.cast(pixels[..., 0], tf.int32))

    head = tf.io.decode_raw(data, tf.uint8, fixed_length=30)
    found = tf.reduce_all(tf.gather(head, (0, 1, 28, 29)) == tf.constant([*b"BM", 8, 0], tf.uint8))
    return tf.cond(found, looked_up, lambda: pixels)


def _side_of(file: Path) -> int:
    try:
        pixels = decoded(tf.io.read_file(os.fspath(file)))
    except tf.errors.OpError as error:
        said = f"{line(file)} cannot be decoded: {line(error.message)}"
        raise ganlab.ConfigError(f"datasets.image_folder: {said}") from None
    return int(min(pixels.shape[:2]))


def _listed(names: set[str]) -> str:
    """The first few of them, `'a.png', 'b.png' and 7 more`."""
    first = ", ".join(repr(name) for name in sorted(names)[:3])
    return first + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _is_image(file: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
    return file.suffix.lower() in _SUFFIXES and not hidden and file.is_file()
