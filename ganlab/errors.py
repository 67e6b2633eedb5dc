"""The errors that ganlab raises. Each message states what failed, the value, the rule and the remedy."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Sequence


class GanlabError(Exception):
    """A mistake that a user can fix. The command line prints its message alone and exits with 2."""


class ConfigError(GanlabError):
    """A gin file, a `--param` or an argument of `ganlab.experiment` that cannot be used."""


class PluginError(GanlabError):
    """A plugin that is broken, missing or in conflict with another."""


class NotNamedError(PluginError):
    """Code, or a machine, that a run, a sweep or a benchmark names, and the user does not.

    Attributes:
        options: What to add to the command.
        reason: Why.
    """

    def __init__(self, options: Sequence[str], reason: str) -> None:
        """Makes the message of both."""
        super().__init__(f"Add {shlex.join(options)}: {reason}")
        self.options, self.reason = list(options), reason


class IncompatibleError(GanlabError):
    """Parts that are valid alone but not together, e.g. a critic that a constraint cannot keep Lipschitz."""


class ContractError(GanlabError):
    """A plugin that broke its contract: a wrong shape, changed keys, a value logged in the wrong place."""


class MissingDependencyError(GanlabError):
    """A missing optional package that the run needs."""


class RunError(GanlabError):
    """A run directory that cannot be created, read or resumed."""


class RunInUseError(RunError):
    """A run that another process holds. The command line exits with 75, EX_TEMPFAIL of sysexits.h: try again later."""


class RunCompletedError(RunError):
    """A run with nothing left to train."""


class TrainingFailedError(Exception):
    """A run that started and could not continue. The command line exits with 1."""


class Interruption(BaseException):
    """Stops a plugin's code, through no fault of its own; not an `Exception`, which a plugin might catch."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns `" Did you mean 'x'?"` for the known name nearest to `name`, or an empty string."""
    known = sorted(known)
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" Did you mean {found[0]!r}?" if found else ""
