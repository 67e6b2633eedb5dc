"""Files as ganlab reads and writes them: whole or not at all, and never trusted. Does not import TensorFlow.

`schema` has the rules that `read_json` checks a file by.
"""

from ganlab.support import schema
from ganlab.support.atomic import new_file, new_folder, scratch_folder, write_text
from ganlab.support.collector import collect_rarely
from ganlab.support.full_disk import is_full_disk
from ganlab.support.locking import locked_folder
from ganlab.support.paths import as_name, local, open_inside, open_regular
from ganlab.support.processes import python_command, run_process, start_process
from ganlab.support.signals import orderly_end
from ganlab.support.strict_json import read_json

__all__ = [
    "as_name",
    "collect_rarely",
    "is_full_disk",
    "local",
    "locked_folder",
    "new_file",
    "new_folder",
    "open_inside",
    "open_regular",
    "orderly_end",
    "python_command",
    "read_json",
    "run_process",
    "schema",
    "scratch_folder",
    "start_process",
    "write_text",
]
