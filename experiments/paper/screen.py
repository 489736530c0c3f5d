"""What the program shows while it works, and when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from paper.experiment import Section, Table
from paper.report.markdown import section_parts, table_text


class Screen:
    """The terminal: progress and remarks go to standard error, tables to standard output."""

    def __init__(self) -> None:
        self.out = Console(soft_wrap=True, highlight=False)
        self.err = Console(stderr=True, highlight=False)

    def say(self, text: str) -> None:
        """A remark."""
        self.err.print(escape(text), soft_wrap=True)

    def show_table(self, table: Table) -> None:
        """A table, as Markdown."""
        self._print(table_text(table))

    def show_section(self, section: Section) -> None:
        """A section without its pictures, as Markdown."""
        self._print("\n\n".join(section_parts(section, None)))

    def _print(self, text: str) -> None:
        self.out.print(escape(text) + "\n")

    @contextmanager
    def fetching(self, name: str) -> Iterator[None]:
        """A bar that moves while data is fetched, which does not tell how far it is."""
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True) as progress:
            progress.add_task(escape(f"reading {name}"), total=None)
            yield


class WorkProgress:
    """A bar for each experiment, in a ``with`` statement."""

    def __init__(self, screen: Screen) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=screen.err,
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> WorkProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, name: str, done: int, total: int) -> None:
        """Show how many units of an experiment are done."""
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(f"{name:<13}", total=total)
        self._progress.update(self._bars[name], completed=done)
