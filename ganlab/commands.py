"""What a command, and the function of the same name, need: messages, options, signals, tables on a terminal.

`several` has the rules for arguments of public functions. Does not import TensorFlow.
"""

from ganlab.cli.completing import complete_folders
from ganlab.cli.durations import Duration
from ganlab.cli.messages import say
from ganlab.cli.options import BESIDE_GIN, HERE, LocalPath, experiment_options, plugin_options
from ganlab.cli.plugin_commands import command_names
from ganlab.cli.process import unheard
from ganlab.cli.tables import cell, table_console
from ganlab.config.files import shown
from ganlab.support import several
from ganlab.support.formatting import counted, in_time
from ganlab.support.signals import Collector, exit_code, handling
from ganlab.support.terminal import line

__all__ = [
    "BESIDE_GIN",
    "HERE",
    "Collector",
    "Duration",
    "LocalPath",
    "cell",
    "command_names",
    "complete_folders",
    "counted",
    "exit_code",
    "experiment_options",
    "handling",
    "in_time",
    "line",
    "plugin_options",
    "say",
    "several",
    "shown",
    "table_console",
    "unheard",
]
