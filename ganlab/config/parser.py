"""The statements of experiment files with their file and line, as gin's grammar gives them and not yet resolved."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gin import config_parser

from ganlab.config.files import find_gin_file, find_included, shown
from ganlab.config.overrides import origin
from ganlab.config.sources import check_inside, read_source
from ganlab.errors import ConfigError
from ganlab.plugins.discovery import home_of

# An experiment is a handful of files, a few levels deep; anything beyond these bounds is an attempt to exhaust memory.
_MOST_FILES, _DEEPEST = 256, 32
_TOO_DEEP = f"brackets in more than {_DEEPEST} brackets. Write a flatter value."

_WORDS = {
    "true": "Write True.",
    "false": "Write False.",
    "none": "Write None.",
    "null": "Write None.",
    "nan": "A setting must be a number.",
    "inf": "Write 1e999 for infinity.",
}


@dataclass(frozen=True)
class Reference:
    """A component named in a value: `@scope/kind.name()`.

    Attributes:
        scope: The scopes before the name, outermost first.
        selector: The name; as written at first, complete once names are resolved.
        called: Whether `()` follows.
    """

    scope: tuple[str, ...]
    selector: str
    called: bool

    def __repr__(self) -> str:
        return f"@{'/'.join([*self.scope, self.selector])}{'()' if self.called else ''}"


# Begins the names of macros that stand for values of Python, which no file can define.
ONLY_IN_PYTHON = "only_in_python/"


@dataclass(frozen=True)
class Macro:
    """A macro named in a value: `%name`."""

    name: str

    @property
    def only_in_python(self) -> bool:
        """Whether it stands for a value that the person who made it in Python has to give again."""
        return self.name.startswith(ONLY_IN_PYTHON)

    def __repr__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, eq=False)
class Binding:
    """One line `scope/selector.parameter = value`.

    Attributes:
        scope: The scopes before the name, outermost first.
        selector: The configured object, `experiment` or `kind.name`; empty for the definition of a macro.
        parameter: The parameter that is set, or the macro's name.
        value: Plain values, references and macros, nested.
        where: `file:line`, for messages.
        source: The number of the `--gin` or `--param` that it comes from.
        included: Whether it is in an included file, where it is a default that may remain unused.
        text: The value of a `--param` as typed, empty otherwise.
        is_data: Whether it is in a file of a run, a sweep or a benchmark, which may come from a stranger.
    """

    scope: tuple[str, ...]
    selector: str
    parameter: str
    value: Any
    where: str
    source: int
    included: bool = False
    text: str = ""
    is_data: bool = False

    @property
    def key(self) -> tuple[tuple[str, ...], str, str]:
        """The key that a later binding must share to replace this one."""
        return self.scope, self.selector, self.parameter

    @property
    def name(self) -> str:
        """The left-hand side."""
        return "/".join([*self.scope, f"{self.selector}.{self.parameter}" if self.selector else self.parameter])


@dataclass(frozen=True)
class Unquoted:
    """The value of a `--param` that is not a gin value: text if the parameter takes text, otherwise a mistake.

    Attributes:
        text: The value as typed.
        reason: Why it is not a gin value.
    """

    text: str
    reason: str


@dataclass
class Statements:
    """The bindings of all sources in order, and the names of blocks.

    Attributes:
        bindings: Later ones override earlier ones.
        blocks: `(selector, where)` of every block header, whose selector must exist too.
        files: The named files, by number of the source; None for a `--param`.
    """

    bindings: list[Binding] = field(default_factory=list)
    blocks: list[tuple[str, str]] = field(default_factory=list)
    files: list[Path | None] = field(default_factory=list)


# Whether a name is a component's: then a bare value lacks its '@' rather than its quotes.
IsComponent = Callable[[str], bool]


class _Delegate(config_parser.ParserDelegate):
    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> Reference:
        *scope, selector = scoped_configurable_name.split("/")
        return Reference(tuple(scope), selector, evaluate)

    def macro(self, macro_name: str) -> Macro:
        return Macro(macro_name)


def read(
    sources: Sequence[str | Path], params: Sequence[str], is_component: IsComponent, settings: Sequence[str] = ()
) -> Statements:
    """Reads files with their includes, then `--param` strings, then settings in the same form."""
    statements = Statements()
    reader = _Reader(statements, is_component)
    for source in sources:
        path = find_gin_file(source)
        statements.files.append(path)
        reader.file(path, (), None)
    overrides = [(param, origin(param)) for param in params]
    for text, where in [*overrides, *((setting, f"setting {setting!r}") for setting in settings)]:
        statements.files.append(None)
        statements.bindings.append(read_param(text, where, len(statements.files) - 1, is_component))
    return statements


def read_text(text: str, where: str) -> Statements:
    """Reads gin text as if it were a single file."""
    statements = Statements(files=[None])
    _Reader(statements, lambda name: False).text(text, where, (), None)
    return statements


class _Reader:
    """Follows includes and collects statements."""

    def __init__(self, statements: Statements, is_component: IsComponent) -> None:
        self._statements, self._is_component, self._opened = statements, is_component, 0

    def file(self, path: Path, including: tuple[Path, ...], home: Path | None) -> None:
        """Reads a file, to which others lead; it must lie in `home`, the folder of a run or a sweep, if any."""
        home = home or home_of(path)
        self._opened += 1
        if self._opened > _MOST_FILES:
            raise ConfigError(
                f"{shown((*including, path)[0])} includes more than {_MOST_FILES} files; a file that is included twice "
                "counts twice. Include each from one place."
            )
        self.text(read_source(path, home), shown(path), (*including, path), home)

    def text(self, text: str, name: str, files: tuple[Path, ...], home: Path | None) -> None:
        """Reads a text: that of the last of `files`, to which the others lead."""
        source = len(self._statements.files) - 1
        for statement in _parse(text, name, self._is_component):
            where = f"{name}:{statement.location.line_num}"
            if isinstance(statement, config_parser.BindingStatement):
                key = _key(statement.scope, statement.selector, statement.arg_name)
                included, is_data = len(files) > 1, home is not None
                binding = Binding(*key, statement.value, where, source, included=included, is_data=is_data)
                self._statements.bindings.append(binding)
            elif isinstance(statement, config_parser.BlockDeclaration):
                self._statements.blocks.append((statement.selector, where))
            elif isinstance(statement, config_parser.IncludeStatement):
                self._include(statement.filename, where, files, home)
            else:
                raise ConfigError(
                    f"{where}: '{statement.format()}' is not supported, because experiment files are data. Plugins are "
                    "found automatically: install one with pip, or put a ganlab_plugins.py beside the file."
                )

    def _include(self, name: str, where: str, files: tuple[Path, ...], home: Path | None) -> None:
        if home is not None and files:
            check_inside(files[-1].parent / name, home, f"{where}: include {name!r}")
        try:
            target = find_included(name, files[-1] if files else None)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        if home is not None:
            check_inside(target, home, f"{where}: include {name!r}")
        if target.resolve() in [file.resolve() for file in files]:
            way = " -> ".join(shown(file) for file in [*files, target])
            raise ConfigError(f"{where}: include {name!r} is circular: {way}.")
        if len(files) > _DEEPEST:
            raise ConfigError(f"{where}: include {name!r} is more than {_DEEPEST} includes deep. Include it directly.")
        self.file(target, files, home)


def _parse(text: str, name: str, is_component: IsComponent) -> Iterator[Any]:
    """Parses statements with gin's grammar; turns its many errors into one message with the file and the line."""
    parser: Any = None
    try:
        parser = config_parser.ConfigParser(io.StringIO(text), _Delegate())
        for statement in parser:
            if isinstance(statement, config_parser.BindingStatement) and _depth(statement.value) > _DEEPEST:
                raise ConfigError(f"{name}:{statement.location.line_num}: {_TOO_DEEP}")
            yield statement
    except tokenize.TokenError as error:
        message, (line, _) = error.args
        raise ConfigError(
            f"{name}:{line}: the file ends too early: {message}. Close every bracket and quote."
        ) from None
    except SyntaxError as error:
        lines = text.split("\n")
        line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
        if "ENDMARKER" in error.msg:  # the line is the empty one after the last
            raise ConfigError(f"{name}:{error.lineno}: the file ends too early: a block has no lines.") from None
        raise ConfigError(f"{name}:{error.lineno}: {_explain(error.msg, line, is_component)}") from None
    except RecursionError:
        line = parser.current_token.start[0] if parser else 1
        raise ConfigError(f"{name}:{line}: {_TOO_DEEP}") from None
    except TypeError:
        line = parser.current_token.start[0] if parser else 1
        raise ConfigError(
            f"{name}:{line}: a list or a dict cannot be a key of a dict. Write text or a number."
        ) from None


def _depth(value: Any) -> int:
    items = value if isinstance(value, (list, tuple)) else [*value, *value.values()] if isinstance(value, dict) else ()
    return 1 + max(map(_depth, items), default=0) if isinstance(value, (list, tuple, dict)) else 0


def _explain(message: str, line: str, is_component: IsComponent) -> str:
    line = line.split("#")[0].strip()
    token = re.search(r"Failed to parse token '(.*)'", message)
    left, _, right = (part.strip() for part in line.partition("="))
    if not token:
        reason = message.splitlines()[0].rstrip(".")
        if line.endswith("="):
            reason = "the value is missing"
        elif line.count("'") % 2 or line.count('"') % 2:
            reason = "a quote is not closed"
        return f"this is not gin: {line!r} ({reason}). A line has the form NAME = VALUE, with one value."
    word = token[1]
    begins = f"{left} = {right}" if right.startswith(word) else word
    whole = right if right.startswith(word) else word
    if word.lower() in _WORDS:
        return f"{begins} is not a value. {_WORDS[word.lower()]}"
    if is_component(whole.removesuffix("()")):
        return f"{begins} is not a value. Write @{whole.removesuffix('()')}() to use that component."
    return f"{begins} is not a value. Write {whole!r} in quotes if it is text."


def _key(scope: str, selector: str, parameter: str) -> tuple[tuple[str, ...], str, str]:
    scopes = tuple(scope.split("/")) if scope else ()
    # gin defines a macro by a bare name; its scopes are part of the name.
    return (scopes, selector, parameter) if parameter else ((), "", "/".join([*scopes, selector]))


def read_param(param: str, where: str, source: int, is_component: IsComponent) -> Binding:
    """Reads one NAME=VALUE as typed by a user; `where` is its name in messages."""
    left, equals, right = (part.strip() for part in param.partition("="))
    if not equals or not right or not re.fullmatch(r"[\w./]+", left):
        raise ConfigError(f"{where}: must have the form NAME=VALUE, for example 'experiment.steps=100'.")
    try:
        statements = list(_parse(param, "--param", is_component))
    except ConfigError as error:
        # Shells remove quotes. Keep the bare text, which is used if the parameter takes text.
        value = Unquoted(right, str(error).split(": ", 1)[1])
        return Binding(*_key(*config_parser.parse_binding_key(left)), value, where, source, text=right)
    if len(statements) != 1 or not isinstance(statements[0], config_parser.BindingStatement):
        raise ConfigError(f"{where}: must be one NAME=VALUE.")
    scope, selector, parameter, value, _ = statements[0]
    return Binding(*_key(scope, selector, parameter), value, where, source, text=right)
