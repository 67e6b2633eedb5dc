"""Becomes a command that Linux kills when its parent dies: `python -I -S with_parent.py PARENT COMMAND...`.

A program of its own, as code between fork and exec is not safe in a process with threads.
"""

import os
import signal
import sys

CANNOT_START = 127
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Replaces this process by the command; one that cannot be started ends with 127."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        import ctypes  # takes longer than all else, and whoever starts the program imports this module

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the request
            sys.exit(128 + signal.SIGKILL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}.", file=sys.stderr)
        sys.exit(CANNOT_START)


if __name__ == "__main__":
    main()
