"""Rows that no model of one component describes."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

_LEAST_CLUSTERS: Final = 12
_DISTANCE: Final = 3.0  # between centers, about, where a cluster is about one wide
_BEND: Final = 1.5
_NOISE: Final = 0.2


class Rows(NamedTuple):
    """Rows, and what may be asked of them.

    Attributes
    ----------
    complete : array of shape (N, D)
    gappy : array of shape (N, D)
        The same rows, in each of which one entry is NaN.
    labels : array of shape (N,)
        Classes 0 to C - 1.
    target : array of shape (N,)
        What a regression is to predict.
    """

    complete: np.ndarray
    gappy: np.ndarray
    labels: np.ndarray
    target: np.ndarray


def make_rows(n_rows: int, n_features: int, n_classes: int = 2, seed: int = 0) -> Rows:
    """Rows of bent clusters that overlap, in random order.

    Each cluster has a center and a full covariance of its own. Then each column of the second
    half is shifted by a sine of what the columns of the first half say, which no linear
    regression follows. A class has two clusters or more, the first class the first of them,
    and so on. The target is a sum of sines and a product, with noise that grows with one column.

    Parameters
    ----------
    n_rows, n_features, n_classes : int
        N, at least 2 for D, and C.
    seed : int
        Another seed gives other clusters, too.
    """
    rng = np.random.default_rng([seed, n_features, n_classes])
    n_clusters = max(_LEAST_CLUSTERS, 2 * n_classes)
    centers = _DISTANCE / np.sqrt(2 * n_features) * rng.normal(size=(n_clusters, n_features))
    shapes = rng.normal(size=(n_clusters, n_features, n_features)) / np.sqrt(n_features)
    which = rng.integers(n_clusters, size=n_rows)
    noise = rng.normal(size=(n_rows, n_features))
    rows = centers[which] + np.einsum("nij,nj->ni", shapes[which], noise, optimize=True)
    rows += _NOISE * rng.normal(size=rows.shape)
    half = n_features // 2
    mixing = rng.normal(size=(half, n_features - half)) / np.sqrt(half)
    rows[:, half:] += _BEND * np.sin(2.0 * rows[:, :half] @ mixing)
    first, last = rows[:, 0], rows[:, -1]
    spread = _NOISE * (1.0 + np.abs(first))
    target = np.sin(2.0 * first) + 0.5 * first * last + spread * rng.normal(size=n_rows)
    gappy = rows.copy()
    gappy[np.arange(n_rows), rng.integers(n_features, size=n_rows)] = np.nan
    return Rows(rows, gappy, which * n_classes // n_clusters, target)
