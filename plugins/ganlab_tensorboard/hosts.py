"""Refuses requests to names that are not the server's own: a page elsewhere may have its name lead to this machine."""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import socket
from collections.abc import Callable
from typing import Any

from werkzeug import wrappers

from ganlab.files import line

# Names, by commas, under which a proxy of the user's own passes requests on.
VARIABLE = "GANLAB_TENSORBOARD_HOSTS"

# The value of the header Host: a name or an address, and perhaps a port.
_HOST = re.compile(r"(\[[0-9a-f:.%]{2,64}\]|[^\s:,\[\]/@]{1,255})(?::\d{1,5})?", re.ASCII)


def guarded(app: Any, flags: Any) -> Any:
    """Returns the application with every request refused whose Host is not the server's own, whatever its port.

    These are the names of this machine's loopback interface, the names in `GANLAB_TENSORBOARD_HOSTS` and, if the server
    can be reached from elsewhere, its `--host`, any address in numbers and the machine's names.

    Args:
        app: A WSGI application.
        flags: TensorBoard's options; None for its defaults.
    """
    bound = (getattr(flags, "host", None) or "").lower()
    is_public = bool(getattr(flags, "bind_all", False)) or not (bound == "" or _is_loopback(bound))

    def serve(environ: Any, start_response: Callable[..., Any]) -> Any:
        header = environ.get("HTTP_HOST", "")
        if _is_own(header, bound, is_public):
            return app(environ, start_response)
        text = (
            f"This server does not answer requests to {line(header)[:300]!r}, which is not its own name. Ask for "
            f"localhost, or name the host of your proxy in the environment variable {VARIABLE}.\n"
        )
        return wrappers.Response(text, 403, mimetype="text/plain")(environ, start_response)

    return serve


def _is_own(header: str, bound: str, is_public: bool) -> bool:
    match = _HOST.fullmatch(header.lower())
    name = match[1].strip("[]").rstrip(".") if match else ""
    if not name:
        return False
    if _is_loopback(name) or name in os.environ.get(VARIABLE, "").lower().replace(" ", "").split(","):
        return True
    return is_public and (name == bound or _address(name) is not None or name in _machine_names())


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == "localhost" if address is None else address.is_loopback


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


@functools.cache
def _machine_names() -> frozenset[str]:
    names = (socket.gethostname(), socket.getfqdn())
    return frozenset(part for name in names for part in (name.lower(), name.lower().partition(".")[0]))
