"""The arrays of low-rank components in a file, and whether they can be what they claim."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import AnyArray
from figmn.engines.blocks.lowrank_components import BY_COMPONENT, LowRankComponents, LowRankState
from figmn.engines.blocks.pending import Pending
from figmn.kernels.compiler import LARGEST

_VECTORS: Final = ("means", "spreads", "marginals")
_SCALARS: Final = ("log_dets", "masses", "ages", "kept")
_IN_STATE: Final = {"widths": "spreads", "base_scales": "kept"}
"""Names in files, where they differ from those in the state."""
_ROUNDING: Final = 1e-9
_COUNTS: Final = ("ages", "learnt", "dense", "pending")
_LAYOUT: Final = {
    **dict.fromkeys(_VECTORS, "KD"),
    **dict.fromkeys(_SCALARS, "K"),
    "moments": "3D",
    "learnt": "1",
    "dense": "E",
    "roots": "EDD",
    "pending": "K",
    "rows": "RD",
    "row_factors": "Q",
}


def _check(arrays: dict[str, AnyArray]) -> None:
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


def pack(components: LowRankComponents) -> dict[str, AnyArray]:
    """Named arrays that hold everything."""
    components = components.asked()
    count, n_features = components.n_components, components.n_features
    arrays: dict[str, AnyArray] = {
        name: getattr(components.state, _field(name))[:count].copy()
        for name in (*_VECTORS, *_SCALARS)
    }
    dense = [k for k, root in enumerate(components.roots) if len(root)]
    roots = [components.roots[k] for k in dense]
    arrays["moments"] = components.moments
    arrays["learnt"] = np.array([components.n_learnt])
    arrays["dense"] = np.array(dense, dtype=np.int64)
    arrays["roots"] = np.array(roots).reshape(-1, n_features, n_features)
    arrays["pending"] = np.array([len(p) for p in components.pending], dtype=np.int64)
    arrays["rows"] = np.vstack([np.empty((0, n_features)), *(p.rows for p in components.pending)])
    arrays["row_factors"] = np.concatenate(
        [np.empty(0), *(p.factor.ravel() for p in components.pending)]
    )
    return arrays


def _field(name: str) -> str:
    """The field of the state for a name in a file."""
    return {file: field for field, file in _IN_STATE.items()}.get(name, name)


def unpack(arrays: dict[str, AnyArray]) -> LowRankComponents:
    """Inverse of :func:`pack`; raises ValueError on what learning cannot have made."""
    _check(arrays)
    count, n_features = arrays["means"].shape
    components = LowRankComponents(n_features)
    held = {name: arrays[_IN_STATE.get(name, name)].copy() for name in BY_COMPONENT}
    size = np.array([count, arrays["learnt"][0]])
    components.state = LowRankState(size=size, moments=arrays["moments"].copy(), **held)
    components.roots = [np.empty((0, 0))] * count
    for k, root in zip(arrays["dense"], arrays["roots"], strict=True):
        components.roots[k] = root.copy()
    first_row = first_entry = 0
    for n_rows in arrays["pending"]:
        rows = arrays["rows"][first_row : first_row + n_rows].copy()
        entries = arrays["row_factors"][first_entry : first_entry + n_rows**2]
        factor = entries.reshape(n_rows, n_rows).copy()
        if np.any(np.triu(factor, 1) != 0.0) or np.any(np.diagonal(factor) < 1.0):
            raise ValueError("a factor of pending rows is not what it should be")
        components.pending.append(Pending(rows, factor))
        first_row, first_entry = first_row + n_rows, first_entry + n_rows**2
    return components
