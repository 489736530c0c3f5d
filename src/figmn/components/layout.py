"""The arrays of lazy components in a file, and whether they can be what they claim to be."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import AnyArray
from figmn.kernels.compiler import LARGEST

VECTORS: Final = ("means", "spreads", "marginals")
"""Held for each component and variable."""
SCALARS: Final = ("log_dets", "masses", "ages", "kept")
"""Held for each component."""
_ROUNDING: Final = 1e-9
_COUNTS: Final = ("ages", "learnt", "dense", "pending")
_LAYOUT: Final = {
    **dict.fromkeys(VECTORS, "KD"),
    **dict.fromkeys(SCALARS, "K"),
    "moments": "3D",
    "learnt": "1",
    "dense": "E",
    "roots": "EDD",
    "pending": "K",
    "rows": "RD",
    "row_factors": "Q",
}


def check(arrays: dict[str, AnyArray]) -> None:
    """Raise ValueError on arrays that no learning could have made."""
    if set(arrays) != set(_LAYOUT):
        raise ValueError("arrays are missing or unknown")
    counts = (arrays["pending"], arrays["dense"])
    if arrays["means"].ndim != 2 or any(a.ndim != 1 or a.dtype != np.int64 for a in counts):
        raise ValueError("the counts or the means have the wrong shape")
    n_components, n_features = arrays["means"].shape
    pending = arrays["pending"]
    if len(pending) != n_components or np.any(pending < 0) or np.any(pending > 2**20):
        raise ValueError("the counts of pending rows are out of range")
    sizes = {
        "K": n_components,
        "D": n_features,
        "E": len(arrays["dense"]),
        "R": int(pending.sum()),
        "Q": int((pending**2).sum()),
        "1": 1,
        "3": 3,
    }
    for name, letters in _LAYOUT.items():
        kind = np.int64 if name in _COUNTS else np.float64
        if arrays[name].shape != tuple(sizes[a] for a in letters) or arrays[name].dtype != kind:
            raise ValueError(f"array {name!r} has the wrong shape or type")
        if not np.all(np.isfinite(arrays[name])):
            raise ValueError(f"array {name!r} holds NaN or infinity")
    if np.any(np.abs(arrays["means"]) > LARGEST):
        raise ValueError("a mean is out of range")
    diagonals = np.diagonal(arrays["roots"], axis1=1, axis2=2)
    positive = (*(arrays[name] for name in ("spreads", "marginals", "masses", "kept")), diagonals)
    if not all(np.all(values > 0.0) for values in positive) or np.any(arrays["moments"][::2] < 0):
        raise ValueError("a variance or a mass is not positive")
    if np.any(np.triu(arrays["roots"], 1) != 0.0):
        raise ValueError("a precision root is not lower triangular")
    dense = arrays["dense"]
    if np.any(np.diff(dense) <= 0) or np.any(dense < 0) or np.any(dense >= n_components):
        raise ValueError("the dense components are out of range")
    if np.any(np.sum(arrays["rows"] ** 2, axis=1) > 1.0 + _ROUNDING) or arrays["learnt"][0] < 0:
        raise ValueError("a pending row or the row count is out of range")
