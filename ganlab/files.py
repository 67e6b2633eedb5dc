"""Files as ganlab reads and writes them: whole or not at all, and never trusted. Does not import TensorFlow."""

from ganlab.support.atomic import new_file, new_folder, scratch_folder
from ganlab.support.collector import collect_rarely
from ganlab.support.paths import local, open_regular
from ganlab.support.processes import python_command, run_process, start_process
from ganlab.support.signals import orderly_end

__all__ = [
    "collect_rarely",
    "local",
    "new_file",
    "new_folder",
    "open_regular",
    "orderly_end",
    "python_command",
    "run_process",
    "scratch_folder",
    "start_process",
]
