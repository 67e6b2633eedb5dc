"""Files as ganlab reads and writes them: whole or not at all, and never trusted. Does not import TensorFlow.

`schema` has the rules that `read_json` checks a file by.
"""

from ganlab.support import schema
from ganlab.support.atomic import check_free, new_file, scratch_folder, write_text
from ganlab.support.collector import collect_rarely
from ganlab.support.full_disk import is_full, is_full_disk
from ganlab.support.locking import locked_folder
from ganlab.support.paths import (
    as_name,
    check_links,
    is_name,
    local,
    open_inside,
    open_regular,
    open_stored,
    read_inside,
    walk,
)
from ganlab.support.processes import run_process
from ganlab.support.signals import orderly_end
from ganlab.support.strict_json import read_json
from ganlab.support.terminal import line

__all__ = [
    "as_name",
    "check_free",
    "check_links",
    "collect_rarely",
    "is_full",
    "is_full_disk",
    "is_name",
    "line",
    "local",
    "locked_folder",
    "new_file",
    "open_inside",
    "open_regular",
    "open_stored",
    "orderly_end",
    "read_inside",
    "read_json",
    "run_process",
    "schema",
    "scratch_folder",
    "walk",
    "write_text",
]
