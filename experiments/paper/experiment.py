"""What an experiment is: pieces of work that are kept, and how to present their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from paper.plots import Drawing

Settings: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, Any]
Results: TypeAlias = Mapping[str, Result]
"""Results by the names of their units."""

COMMAND: Final = "PYTHONPATH=experiments python -m paper"
"""What runs the experiments, in a checkout."""


class Plan(NamedTuple):
    """What was asked for.

    Attributes
    ----------
    full : bool
        Everything on real data, or what is done in three minutes without a network.
    seed : int
        Of everything random.
    """

    full: bool = False
    seed: int = 0


class Unit(NamedTuple):
    """A piece of work, which is kept when it is done.

    Attributes
    ----------
    name : str
        Unique within the experiment and fit for a file name.
    settings : dict
        All that the result depends on, as JSON can hold it.
    """

    name: str
    settings: Settings


@dataclass(frozen=True)
class Table:
    """Cells of text under a heading each; the first column names the row."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A picture, with a name that is fit for a file."""

    name: str
    caption: str
    drawing: Drawing


class Check(NamedTuple):
    """Something that must hold, what came out, and whether it does."""

    claim: str
    outcome: str
    holds: bool


@dataclass(frozen=True)
class Section:
    """A part of the report: in order, what was done, tables and pictures, and checks."""

    title: str
    text: tuple[str, ...]
    blocks: tuple[Table | Figure, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes
    ----------
    name : str
        By which it is asked for.
    summary : str
        What it shows, in a line.
    units : callable
        The pieces of work of a plan.
    measure : callable
        Does the work of one unit, from its settings. A function of a module, since it
        may run in another process.
    present : callable
        A section of the report, from a plan and the results of all its units.
    parallel : bool
        Whether units may run side by side: not those that take the time, except, on one
        core each, in a quick run.
    apart : bool
        Whether each unit has a process of its own, as where memory is measured.
    images : tuple of str
        Image data that a full run needs.
    spared : tuple of str
        Folders of figmn that results do not come from: when anything else of it changes,
        what was kept is done anew.
    """

    name: str
    summary: str
    units: Callable[[Plan], list[Unit]]
    measure: Callable[..., Result]
    present: Callable[[Plan, Results], Section]
    parallel: bool = False
    apart: bool = False
    images: tuple[str, ...] = ()
    spared: tuple[str, ...] = ("estimators", "rl")
