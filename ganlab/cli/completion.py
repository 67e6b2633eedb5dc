"""`ganlab completion`: the script with which a shell completes `ganlab` commands."""

from __future__ import annotations

import contextlib
import os
import shlex
from typing import ClassVar

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete, add_completion_class

PROGRAM, VARIABLE = "ganlab", "_GANLAB_COMPLETE"

# Bash splits words at "=" and ":", which occur in names of settings and runs. So the whole line is handed over, and the
# part that Bash split off is removed from each answer. No space follows an item that ends with "=", "." or "/".
_BASH = """\
# ganlab on TAB, in Bash. In ~/.bashrc: eval "$(ganlab completion bash)"
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" kind value
    local word="${line##*[[:space:]]}"
    local cut="${word%%"${word##*[$COMP_WORDBREAKS]}"}"
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == *[=./] ]] && compopt -o nospace
                printf -v value '%%q' "${value#"$cut"}"
                COMPREPLY+=("$value")
                ;;
        esac
    done < <(COMP_WORDS="$line" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
# ganlab on TAB, in zsh. In ~/.zshrc, after compinit: eval "$(ganlab completion zsh)"
%(complete_func)s() {
    local -a answer explained
    local kind value help paths
    answer=("${(@f)$(
        COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) %(complete_var)s=zsh_complete $words[1] 2>/dev/null
    )}")
    for kind value help in $answer; do
        case $kind in
            dir) paths=-/ ;;
            file) paths=-f ;;
            plain)
                if [[ $help != _ ]]; then
                    explained+=("$value:$help")
                elif [[ $value == *[=./] ]]; then
                    compadd -U -S '' -- "$value"
                else
                    compadd -U -- "$value"
                fi
                ;;
        esac
    done
    (( $#explained )) && _describe 'ganlab' explained -U
    (( compstate[nmatches] == 0 )) && [[ -n $paths ]] && _path_files $paths
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


class Bash(BashComplete):
    """Bash completion for words that may contain `=`."""

    source_template: ClassVar[str] = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor without the program's name, and the word that the cursor is in."""
        line = os.environ["COMP_WORDS"]
        words = _words(line)
        incomplete = "" if not words or line[-1:].isspace() else words.pop()
        return words[1:], incomplete


class Zsh(ZshComplete):
    """Zsh completion for words that are completed in several parts."""

    source_template: ClassVar[str] = _ZSH


_SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": FishComplete}


def register() -> None:
    """Makes click answer with the classes of this module."""
    for name, shell in _SHELLS.items():
        add_completion_class(shell, name)


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Prints a shell script that completes commands, options, runs and names on TAB.

    \b
    eval "$(ganlab completion bash)"      in ~/.bashrc
    eval "$(ganlab completion zsh)"       in ~/.zshrc, after compinit
    ganlab completion fish | source       in ~/.config/fish/config.fish
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    root = ctx.find_root().command
    script = _SHELLS[shell](root, {}, PROGRAM, VARIABLE).source()
    if shell == "fish":
        script = f"# ganlab on TAB, in fish. In ~/.config/fish/config.fish: ganlab completion fish | source\n{script}"
    click.echo(script, nl=not script.endswith("\n"))


def _words(line: str) -> list[str]:
    """Splits a line into words as shells do; a quote may be open at its end."""
    for closing in ("", '"', "'"):
        with contextlib.suppress(ValueError):
            return shlex.split(line + closing)
    return line.split()
