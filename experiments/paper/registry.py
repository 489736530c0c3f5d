"""The experiments by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paper import (
    accuracy,
    clustering,
    digits,
    dimensions,
    high,
    reinforcement,
    stream,
)
from paper.experiment import Experiment

EXPERIMENTS: Final[dict[str, Experiment]] = {
    experiment.name: experiment
    for experiment in (
        stream.EXPERIMENT,
        accuracy.EXPERIMENT,
        high.EXPERIMENT,
        dimensions.EXPERIMENT,
        clustering.EXPERIMENT,
        digits.EXPERIMENT,
        reinforcement.EXPERIMENT,
    )
}


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Experiments by name, in their usual order; all of them if none is named."""
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(
            f"There is no experiment {unknown[0]!r}: choose from {', '.join(EXPERIMENTS)}."
        )
    return [e for e in EXPERIMENTS.values() if not names or e.name in names]
