"""Public names for commands: messages, options, signals, tables, experiment files and plugins.

`several` has the rules for arguments of public functions. Does not import TensorFlow.
"""

from ganlab.cli.completing import complete_folders
from ganlab.cli.messages import confirm, of_last_metrics, say, say_json, warn
from ganlab.cli.options import (
    BESIDE_GIN,
    HERE,
    OPENED,
    LocalPath,
    RunsPath,
    checkpoint_option,
    experiment_options,
    plugin_options,
    run_with_plugins,
)
from ganlab.cli.plugin_commands import command_names
from ganlab.cli.process import unheard
from ganlab.cli.quiet_start import start_tensorflow
from ganlab.cli.run import last_screen
from ganlab.cli.tables import cell, print_table, table_console
from ganlab.composition import LISTS
from ganlab.composition import OF_GENERATOR as GENERATOR_SETTINGS
from ganlab.config import objects, render
from ganlab.config.files import find_gin_file, shipped_folder, shown
from ganlab.config.loader import arguments, load_variant, takes_fractions
from ganlab.config.logged import better_direction, check_logged
from ganlab.config.overrides import Override
from ganlab.config.overrides import components as part_override
from ganlab.config.spelling import setting_name
from ganlab.interfaces import Direction
from ganlab.plugins import manager as plugins
from ganlab.plugins.catalog import reason_of
from ganlab.plugins.discovery import plugin_file_in
from ganlab.plugins.import_guard import printing_to_stderr
from ganlab.plugins.manager import KINDS, LOCAL_MODULE, UNUSABLE, Component, Plugin, Plugins
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import Recipe, selector_of
from ganlab.runs.experiment_source import read_experiment, use_plugins
from ganlab.support import several
from ganlab.support.formatting import counted, from_bytes, in_bytes, in_time, listed
from ganlab.support.names import meant, one_meant
from ganlab.support.signals import Collector, exit_code, handling

__all__ = [
    "BESIDE_GIN",
    "GENERATOR_SETTINGS",
    "HERE",
    "KINDS",
    "LISTS",
    "LOCAL_MODULE",
    "OPENED",
    "UNUSABLE",
    "Collector",
    "Component",
    "Direction",
    "LocalPath",
    "Override",
    "Plugin",
    "Plugins",
    "Recipe",
    "RunsPath",
    "arguments",
    "better_direction",
    "cell",
    "check_logged",
    "checkpoint_option",
    "command_names",
    "complete_folders",
    "confirm",
    "counted",
    "exit_code",
    "experiment_options",
    "find_gin_file",
    "from_bytes",
    "handling",
    "in_bytes",
    "in_time",
    "last_screen",
    "listed",
    "load_variant",
    "meant",
    "objects",
    "of_last_metrics",
    "one_meant",
    "part_override",
    "plugin_code",
    "plugin_file_in",
    "plugin_options",
    "plugins",
    "print_table",
    "printing_to_stderr",
    "read_experiment",
    "reason_of",
    "render",
    "run_with_plugins",
    "say",
    "say_json",
    "selector_of",
    "setting_name",
    "several",
    "shipped_folder",
    "shown",
    "start_tensorflow",
    "table_console",
    "takes_fractions",
    "unheard",
    "use_plugins",
    "warn",
]
