"""The comment at the head of an experiment file: its source, its published score, and what differs."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "published.md"


class Head:
    """What the head of a file says.

    Attributes:
        name: The file's name without its ending.
        text: The head as one line.
    """

    def __init__(self, file: Path) -> None:
        self.name = file.stem
        lines = itertools.takewhile(lambda line: line.startswith("#"), file.read_text().splitlines())
        self.text = " ".join(line.removeprefix("#").strip() for line in lines)

    def has(self, words: str) -> bool:
        """Whether these words stand in the head."""
        return words in self.text

    @property
    def differences(self) -> list[str]:
        """The differences that it states, one by one."""
        stated = self._after("What differs:").split(" ganlab run ")[0]
        return [clause.strip(" .") for clause in re.split(r";|\. ", stated) if clause.strip(" .")]

    def stated(self, fact: str, words: str) -> str:
        """These words, if the head has them, and for "published" facts also the file's row in docs/published.md."""
        rows = [line for line in _PAGE.read_text().splitlines() if line.startswith(f"| {self.name} |")]
        page = rows[0].replace("±", "+-") if rows else ""
        texts = [self._after("Published:"), page] if fact.startswith("published.") else [self.text]
        return words if all(words in text for text in texts) else f"not in {'head and page' if texts[1:] else 'head'}"

    def _after(self, words: str) -> str:
        return self.text.partition(words)[2].strip()
