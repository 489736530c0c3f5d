"""A sample of a stream, kept row by row."""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import compiled, inlined


@compiled
def uniform(number: int) -> float:
    """A number in (0, 1] for each integer, as if drawn at random (splitmix64)."""
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(11)) + 1.0) / 9007199254740992.0


@compiled
def keep_highest(
    rows: Array,
    weights: Array,
    first: int,
    kept: Array,
    kept_weights: Array,
    ranks: Array,
    passed: float,
) -> float:
    """Let rows take the places of those with lower ranks; the highest rank left out.

    A row's rank is its weight over a random number, which follows from its position.

    Parameters
    ----------
    rows : array of shape (N, D)
    weights : array of shape (N,)
    first : int
        Position of the first row in the stream.
    kept : array of shape (M, D)
    kept_weights, ranks : array of shape (M,)
    passed : float
        The highest rank left out so far.
    """
    lowest = _lowest(ranks)
    n_rows, n_features = rows.shape
    for i in range(n_rows):
        if not weights[i] > 0.0 or _is_unknown(rows, i):
            continue
        rank = weights[i] / uniform(first + i)
        if rank <= ranks[lowest]:
            passed = max(passed, rank)
            continue
        passed = max(passed, ranks[lowest])
        for d in range(n_features):
            kept[lowest, d] = rows[i, d]
        kept_weights[lowest] = weights[i]
        ranks[lowest] = rank
        lowest = _lowest(ranks)
    return passed


@inlined
def _lowest(ranks: Array) -> int:
    lowest = 0
    for m in range(len(ranks)):
        if ranks[m] < ranks[lowest]:
            lowest = m
    return lowest


@inlined
def _is_unknown(rows: Array, i: int) -> bool:
    _, n_features = rows.shape
    for d in range(n_features):  # noqa: SIM110, since kernels have no generators
        if not math.isnan(rows[i, d]):
            return False
    return True
