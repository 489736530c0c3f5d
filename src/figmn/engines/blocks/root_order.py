"""Triangular roots of precisions, with their variables in another order."""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array, Index
from figmn.engines.factors import reorder
from figmn.kernels.compiler import compiled

_FEW_MOVES = 8  # moving one variable in so many costs less than to factor anew


@compiled
def move_last(root: Array, position: int) -> None:
    """Make one variable the last, in the lower triangular root of a precision, in place.

    The variables after it move up by one; O(D^2), by rotations of adjacent rows.
    """
    n_features = len(root)
    last = n_features - 1
    held = root[position].copy()  # the row that takes up the variable's column
    column = held[position]
    held[position] = 0.0
    for r in range(position + 1, n_features):
        entry = root[r, position]
        for j in range(position, r):
            root[r, j] = root[r, j + 1]
        length = math.hypot(column, entry)
        cosine, sine = column / length, entry / length
        for j in range(r):
            mine, other = root[r, j], held[j]
            root[r - 1, j] = cosine * mine - sine * other
            held[j] = sine * mine + cosine * other
        for j in range(r, n_features):
            root[r - 1, j] = 0.0
        column = length
    for j in range(last):
        root[last, j] = held[j]
    root[last, last] = column


def reorder_root(root: Array, order: Index) -> Array:
    """Lower triangular root of the precision of the variables ``order``, in that order.

    Few moves cost less than to factor anew.

    Parameters
    ----------
    root : array of shape (D, D)
        May be overwritten.
    order : int array of shape (M,)
    """
    n_features, kept = len(root), len(order)
    if np.array_equal(order, np.arange(kept)):
        return root[:kept, :kept].copy()
    moved = _moved_behind(order, n_features)
    if len(moved) > n_features // _FEW_MOVES:
        diagonal = np.diagonal(root)[np.newaxis]
        whitener, variances = reorder((root / diagonal.T)[np.newaxis], diagonal**-2.0, order)
        return np.asarray(whitener[0] / np.sqrt(variances[0])[:, np.newaxis])
    places = np.arange(n_features)
    for variable in moved:
        position = int(np.flatnonzero(places == variable)[0])
        move_last(root, position)
        places = np.append(np.delete(places, position), variable)
    return np.ascontiguousarray(root[:kept, :kept])


def _moved_behind(order: Index, n_features: int) -> Index:
    """The variables to move, one after the other, behind those that can stay."""
    falls = np.flatnonzero(np.diff(order) < 0)
    staying = falls[0] + 1 if len(falls) else len(order)
    return np.concatenate([order[staying:], np.setdiff1d(np.arange(n_features), order)])
