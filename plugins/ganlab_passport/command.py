"""`ganlab passport`: a penalty or a loss as inputs and answers, and the check of anybody's program against them."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

import ganlab.commands
from ganlab.commands import LocalPath, counted, say
from ganlab.errors import ConfigError, PluginError
from ganlab.files import line, new_file
from ganlab_passport.tensors import ENDINGS

if TYPE_CHECKING:
    from ganlab_passport.checking import Verdict
    from ganlab_passport.subjects import Subject


@click.command("passport")
@click.argument("name", metavar="COMPONENT|check")
@click.argument("file", metavar="[FILE]", type=LocalPath(exists=True, dir_okay=False), required=False)
@click.option("-o", "--output", metavar="FILE", type=LocalPath(), help="The file to write, .safetensors or .json.")
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="A setting of the component: 'weight=1'.")
@click.option("--command", metavar="COMMAND", help="With check: the program, for example 'python mine.py'.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    default=120.0,
    show_default=True,
    help="With check: how long the program may take.",
)
@click.option("--json", "as_json", is_flag=True, help="With check: print the verdict as JSON.")
@ganlab.commands.plugin_options(ganlab.commands.HERE)
@click.pass_context
def passport(
    ctx: click.Context,
    name: str,
    file: Path | None,
    output: Path | None,
    params: tuple[str, ...],
    command: str | None,
    seconds: float,
    as_json: bool,
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
) -> None:
    """Writes a penalty or a loss as inputs and answers, or checks anybody's program against such a file.

    A passport holds inputs, weights of small networks, random numbers, the value of each example and the gradient by
    each weight in float64 and float32, for batches of 1, 3 and 7, vectors and images, with and without labels, and in
    words all that a program needs to compute the same.

    "check" starts a program with the inputs as its standard input (and as a file, whose path replaces {} in the
    command), reads the values and gradients that it prints as JSON or safetensors, and says whether they are right, or
    which other convention they follow. The exit status is 1 if they are not right.

    \b
    ganlab passport constraints.gradient_penalty -o gp.safetensors
    ganlab passport constraints.r1 --param gamma=1 -o r1.json
    ganlab passport check gp.json --command "python mine.py"
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if (name == "check" and not (file and command)) or (name != "check" and (file or command or output is None)):
        raise click.UsageError(
            "Write 'ganlab passport COMPONENT -o FILE', or 'ganlab passport check FILE --command COMMAND'."
        )
    if output is not None and output.suffix not in ENDINGS:
        raise click.UsageError(f"-o {line(output)} must end in {' or '.join(ENDINGS)}.")
    local = plugin_file or ganlab.commands.plugin_file_in(Path())
    installed = ganlab.commands.use_plugins(no_plugin, plugin_file=local)

    def subject(component: str, settings: list[str]) -> Subject:
        from ganlab_verify import maker
        from ganlab_verify import settings as read_settings

        from ganlab_passport.subjects import Subject

        kind, dot, own = component.partition(".")
        if not dot:
            raise ConfigError(
                f"{component!r:.80} must have its kind before it, for example constraints.gradient_penalty."
            )
        found = installed.component(kind, own)
        given = read_settings([found], settings).get(f"{found.kind}.{found.name}", {})
        return Subject(f"{found.kind}.{found.name}", maker(found, given), settings)

    with ganlab.commands.printing_to_stderr() if as_json else contextlib.nullcontext():
        ganlab.commands.start_tensorflow()
        from ganlab_passport import checking, passport, program

        if output is not None:
            made = passport.make(subject(name, list(params)))
            with new_file(output) as written:
                written.write(made.encoded(output.suffix))
            return say(f"Wrote {output}: {name} in {counted(len(made.answers), 'case')}, and in words.")
        assert file
        assert command
        try:
            known = passport.read(file, subject)
        except PluginError as error:
            if local is not None:
                raise
            raise PluginError(f"{error} A passport of a plugin's component needs the plugin: --plugin-file.") from None
        answers = program.answers(command, known.given(file.suffix), file.suffix, seconds=seconds)
        verdict = checking.check(known, answers)
    component = known.subject.selector
    if as_json:
        ganlab.commands.say_json({"component": component, **asdict(verdict)})
    else:
        _show(component, verdict, len(known.answers))
    if verdict.status == "failed" or verdict.unanswered:
        ctx.exit(1)


def _show(component: str, verdict: Verdict, cases: int) -> None:
    given = cases - len(verdict.unanswered)
    answered, wrong = f"{component} in {given} of {counted(cases, 'case')}", given - len(verdict.right)
    differs = f"{component} in {wrong} of {counted(given, 'case')}"
    if verdict.status == "passed":
        say(f"Right: {answered}, values and gradients (largest error {verdict.error:.0e} of their norm).")
    elif verdict.conventions:
        say(f"Not {differs}, but another convention: {'. Or, the same here: '.join(verdict.conventions)}.")
    else:
        say(f"Not {differs}, and no known convention (largest error {verdict.error:.1e} of the norm).")
    if verdict.status == "other":
        say("Training by it is the same: the distribution of the penalty does not change.")
    for note in verdict.notes:
        say(line(note))
    if verdict.unanswered:
        say(f"Not answered: {', '.join(verdict.unanswered)}.")
