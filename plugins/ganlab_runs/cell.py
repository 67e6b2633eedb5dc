"""A run as a notebook shows it: its status, its last metrics and its newest picture of samples."""

from __future__ import annotations

import html

from ganlab.comparing import embedded, newest
from ganlab.errors import GanlabError
from ganlab.files import line
from ganlab.runs import RunDirectory

_PICTURES = 30  # share the room of a page: a notebook that is saved keeps those of all its runs


def as_html(run: RunDirectory) -> str:
    """The run as HTML, from its files, which may come from a stranger."""
    try:
        info, picture = run.info, newest(run.path)
        address = embedded(picture, of=_PICTURES) if picture else None
    except GanlabError as error:
        return f"<p>{_escaped(error)}</p>"
    step = f", step {info.get('step')} of {info.get('steps')}" if "step" in info else ""
    measured = info.get("metrics", {}) | info.get("evaluation", {})
    rows = [f"<tr><td>{_escaped(tag)}</td><td>{value:.4g}</td></tr>" for tag, value in measured.items()]
    drawn = f'<img src="{address}" alt="samples" style="max-width: 420px">' if address else ""
    return (
        f"<p><b>{_escaped(run.path)}</b>: {_escaped(info.get('status', 'unknown'))}{_escaped(step)}</p>"
        f'<div style="display: flex; gap: 2em"><table>{"".join(rows)}</table>{drawn}</div>'
    )


def _escaped(text: object) -> str:
    return html.escape(line(text))
