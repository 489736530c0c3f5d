"""Taking the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from figmn import Mixture
from paper.typing import Array

_MANY: Final = 256  # variables from which on mixtures learn by blocks of rows


class Projected(NamedTuple):
    """Seconds for many rows, and on how many of them the time was taken."""

    seconds: float
    n_timed: int


def best_seconds(action: Callable[[], object], repeats: int) -> float:
    """The shortest of several runs: other work on the machine only ever adds time."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def projected_seconds(
    action: Callable[[Array], object], rows: Array, n_rows: int, budget: float
) -> Projected:
    """Time of an action on each of many rows, from as many as a budget allows.

    For what takes the same time for every row, as with one component for ever.

    Parameters
    ----------
    action : callable
        Is given one row of shape (D,).
    rows : array of shape (N, D)
        To take the time on, at least the first of them.
    n_rows : int
        To project to.
    budget : float
        Seconds after which no further row is begun.
    """
    done, spent = 0, 0.0
    start = time.perf_counter()
    while done < len(rows) and spent < budget:
        action(rows[done])
        done += 1
        spent = time.perf_counter() - start
    return Projected(spent / done * n_rows, done)


def load_kernels(n_features: int) -> None:
    """Learn and answer a little, so that nothing is compiled or loaded while time is taken."""
    for n in {n_features, min(n_features, _MANY)}:
        # Enough rows for a component to become dense, in the smaller of the two at least.
        rows = np.random.default_rng(0).normal(size=(2 * _MANY, n))
        mixture = Mixture(n, scale=1.0, beta=0.0).learn(rows)
        mixture.log_density(rows)
        if n > 1:
            mixture.infer(rows[:, 1:], known=np.arange(1, n), wanted=[0]).mean()
