"""What a command of the command line needs: messages, options, tables on a terminal. Does not import TensorFlow."""

from ganlab.cli.experiments import read_experiment, use_plugins
from ganlab.cli.messages import say
from ganlab.cli.options import BESIDE_GIN, HERE, experiment_options, plugin_options
from ganlab.cli.plugin_commands import command_names
from ganlab.cli.tables import cell, table_console
from ganlab.config.files import shipped_folder
from ganlab.config.loader import arguments
from ganlab.config.overrides import Override
from ganlab.plugins import manager as plugins
from ganlab.plugins.catalog import reason_of
from ganlab.plugins.discovery import plugin_file_in
from ganlab.plugins.import_guard import printing_to_stderr
from ganlab.plugins.manager import KINDS, LOCAL_MODULE, UNUSABLE, Component, Plugin, Plugins
from ganlab.support import several
from ganlab.support.formatting import in_time, listed

__all__ = [
    "BESIDE_GIN",
    "HERE",
    "KINDS",
    "LOCAL_MODULE",
    "UNUSABLE",
    "Component",
    "Override",
    "Plugin",
    "Plugins",
    "arguments",
    "cell",
    "command_names",
    "experiment_options",
    "in_time",
    "listed",
    "plugin_file_in",
    "plugin_options",
    "plugins",
    "printing_to_stderr",
    "read_experiment",
    "reason_of",
    "say",
    "several",
    "shipped_folder",
    "table_console",
    "use_plugins",
]
