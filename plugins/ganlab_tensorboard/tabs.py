"""Two of TensorBoard's tabs as served by `ganlab tensorboard`.

Each is TensorBoard's own plugin with one change. HParams has the columns for a comparison: the settings in which runs
differ, and their results. Custom Scalars has the same mark for the reduced line of every run.
"""

from __future__ import annotations

import re
from typing import Any

from tensorboard.plugins.custom_scalar import custom_scalars_plugin
from tensorboard.plugins.hparams import backend_context, hparams_plugin, metadata

from ganlab.runs import SEED, differing, short

# TensorBoard shows the first five metrics until others are ticked: first the evaluators' figures, which can be compared
# across constraints, and then these, which cannot.
_TRAINED = ("critic/wasserstein", "critic/penalty", "critic/loss", "generator/loss")

# What layouts of ganlab ask for, alone or as TensorBoard joins several: one repetition at most, in linear time.
_ATOM = r"(?:\\[^A-Za-z0-9]|\\d|\[\^/\]|[^\\\[\]()*+?{}|^$])"
_ONE = rf"\^?{_ATOM}*(?:[*+]{_ATOM}*)?\$?"
_PATTERN = re.compile(rf"{_ONE}|\({_ONE}\)(?:\|\({_ONE}\))*")


class ComparingHParams(hparams_plugin.HParamsPlugin):
    """TensorBoard's own plugin, except for the columns, which are computed from the runs at each request.

    Otherwise TensorBoard would show, of all settings and all curves of all replicas, the first five in the alphabet.
    """

    def __init__(self, context: Any) -> None:
        """Takes the server's context, like every plugin of TensorBoard."""
        super().__init__(context)
        self._context = _Columns(context)


class MarkedCustomScalars(custom_scalars_plugin.CustomScalarsPlugin):
    """TensorBoard's own plugin, with the lines of a chart in order: reduced, replica 0, replica 1, ...

    TensorBoard assigns marks in the order of lines, which would otherwise differ from run to run.
    """

    def scalars_impl(self, ctx: Any, run: Any, tag_regex_string: Any, experiment: Any) -> Any:
        """The points of a chart's lines by tag; none for a pattern that could stop the server."""
        pattern = tag_regex_string if _PATTERN.fullmatch(tag_regex_string or "") else "(?!)"
        answer = super().scalars_impl(ctx, run, pattern, experiment)
        lines = answer["tag_to_events"]
        return {**answer, "tag_to_events": {tag: lines[tag] for tag in sorted(lines, key=_line_order)}}


def _line_order(tag: str) -> tuple[int, str]:
    head, _, rest = tag.partition("/")
    index, _, metric = rest.partition("/")
    return (int(index), metric) if head == "replica" and index.isdecimal() else (-1, tag)


class _Columns(backend_context.Context):
    def experiment_from_metadata(self, ctx: Any, experiment_id: str, *args: Any, **kwargs: Any) -> Any:
        """The experiment with the columns of the table."""
        experiment = super().experiment_from_metadata(ctx, experiment_id, *args, **kwargs)
        columns = {info.name: info for info in experiment.hparam_infos}
        wanted = self._differing(ctx, experiment_id)
        experiment.ClearField("hparam_infos")
        for name in wanted or columns:
            if name in columns:
                columns[name].display_name = short(name)
                columns[name].differs = name in wanted
                experiment.hparam_infos.append(columns[name])
        metrics = sorted(filter(_is_result, experiment.metric_infos), key=_order)
        experiment.ClearField("metric_infos")
        experiment.metric_infos.extend(metrics)
        return experiment

    def _differing(self, ctx: Any, experiment_id: str) -> list[str]:
        tables = []
        for records in self.hparams_metadata(ctx, experiment_id).values():
            if metadata.SESSION_START_INFO_TAG in records:
                start = metadata.parse_session_start_info_plugin_data(records[metadata.SESSION_START_INFO_TAG])
                tables.append({name: _value(value) for name, value in start.hparams.items()})
        seeds = {table.get(SEED) for table in tables}
        return differing(tables) + ([SEED] if len(seeds) > 1 else [])


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("kind"))


def _is_result(info: Any) -> bool:
    tag = info.name.tag
    return not info.name.group and (tag in _TRAINED or tag.startswith("evaluation/"))


def _order(info: Any) -> tuple[int, str]:
    tag = info.name.tag
    return (_TRAINED.index(tag) if tag in _TRAINED else -1, tag)
