"""Experiment 6: reinforcement learning, if the package has agents.

The agents bring their own experiment, ``figmn.rl.paper.EXPERIMENT``. Without them the
section shows the paper's figures alone and says what to install.
"""

from __future__ import annotations

import importlib
from typing import Final

from figmn.paper import published
from figmn.paper.experiment import Experiment, Plan, Result, Results, Section, Table, Unit
from figmn.paper.text import plus_minus

NAME: Final = "rl"
_ALGORITHMS: Final = ("FIGMN", "Sarsa(lambda)", "TRPO", "Duel DDQN")


def units(plan: Plan) -> list[Unit]:
    """Nothing to do without agents."""
    return []


def measure() -> Result:
    """Nothing to do without agents."""
    raise NotImplementedError


def published_table() -> Table:
    """The paper's table of episodes."""

    def cell(task: str, algorithm: str) -> str:
        value = published.EPISODES[task].get(algorithm)
        if value is None:
            return "-"
        return plus_minus(value) if value.deviation else f"{value.mean:.0f}"

    return Table(
        "Episodes until a task is solved (paper: table 5)",
        ("task", *(f"paper: {algorithm}" for algorithm in _ALGORITHMS)),
        [(task, *(cell(task, name) for name in _ALGORITHMS)) for task in published.EPISODES],
    )


def present(plan: Plan, results: Results) -> Section:
    """The paper's figures, and what is missing."""
    return Section(
        "Reinforcement learning",
        (
            "Not run: this installation has no agents. Install them with "
            "`pip install 'figmn[rl]'`, and `figmn paper rl` fills in ours.",
        ),
        (published_table(),),
    )


def _found() -> Experiment:
    """The agents' experiment, or a place for it."""
    try:
        experiment: Experiment = importlib.import_module("figmn.rl.paper").EXPERIMENT
    except ImportError:
        return Experiment(
            NAME, "reinforcement learning (table 5), with figmn[rl]", units, measure, present
        )
    return experiment


EXPERIMENT: Final = _found()
