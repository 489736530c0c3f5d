"""Input checks that name the cause and the remedy."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from figmn._typing import Array, ArrayLike, Index
from figmn.kernels.compiler import LARGEST
from figmn.kernels.inspection import first_out_of_range


def as_rows(values: ArrayLike, n_features: int) -> Array:
    """Rows as a C-contiguous float64 array of shape (N, D); NaN marks the unknown."""
    rows = _as_floats(values, "X")
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(
            f"X has shape {rows.shape}, but this mixture has {n_features} variables: "
            f"pass an array of shape (n, {n_features}), with NaN for what is unknown."
        )
    check_range(rows, "X")
    return rows


def as_row(values: ArrayLike, n_features: int) -> Array:
    """One row, as an array of shape (1, D)."""
    row = _as_floats(values, "x")
    if row.ndim != 1 or row.shape[0] != n_features:
        raise ValueError(
            f"x has shape {row.shape}, but this mixture has {n_features} variables: "
            f"pass {n_features} numbers, with NaN for what is unknown."
        )
    check_range(row, "x")
    return row.reshape(1, n_features)


def as_weights(values: ArrayLike | None, n_rows: int) -> Array:
    """Sample weights as an array of shape (N,), ones by default."""
    if values is None:
        return np.ones(n_rows)
    weights = _as_floats(values, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_rows} rows: "
            "pass one weight a row."
        )
    if not np.all((weights >= 0.0) & (weights <= LARGEST)):
        raise ValueError(
            f"sample_weight must be numbers from 0 to {LARGEST:g}: "
            "there is a negative, NaN or too large one."
        )
    return weights


def as_index(variables: Sequence[int] | Index, n_features: int, name: str) -> Index:
    """Distinct variables as an array of positions from 0 to D - 1."""
    index = np.atleast_1d(np.asarray(variables))
    if index.size == 0:
        return np.empty(0, dtype=np.intp)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of column numbers, not {variables!r}.")
    if index.min() < -n_features or index.max() >= n_features:
        raise ValueError(
            f"{name} names a column that does not exist: "
            f"this mixture has columns 0 to {n_features - 1}, asked for {index.tolist()}."
        )
    index = index.astype(np.intp) % n_features
    if len(np.unique(index)) != len(index):
        raise ValueError(f"{name} names a column twice: {index.tolist()}.")
    return index


def as_scale(values: ArrayLike, n_features: int, name: str = "scale") -> Array:
    """Standard deviations as an array of shape (D,)."""
    scale = _as_floats(values, name)
    if scale.ndim == 0:
        scale = np.full(n_features, float(scale))
    if scale.shape != (n_features,):
        raise ValueError(
            f"{name} has shape {scale.shape}: pass one number, or {n_features}, one a column."
        )
    if not np.all((scale >= 1.0 / LARGEST) & (scale <= LARGEST)):
        raise ValueError(
            f"{name} must be positive, from {1.0 / LARGEST:g} to {LARGEST:g}: "
            "for a constant column give the change that would matter."
        )
    return scale.copy()


def as_center(values: ArrayLike, n_features: int) -> Array:
    """Column means as an array of shape (D,)."""
    center = _as_floats(values, "center")
    if center.shape != (n_features,) or not np.all(np.abs(center) <= LARGEST):
        raise ValueError(f"center must be {n_features} finite numbers, one a column.")
    return center.copy()


def as_components(
    means: ArrayLike, covariances: ArrayLike, weights: ArrayLike | None
) -> tuple[Array, Array, Array]:
    """Means (K, D), covariances (K, D, D) and positive weights (K,) of given components."""
    centers = np.atleast_2d(_as_floats(means, "means"))
    matrices = _as_floats(covariances, "covariances")
    n_components, n_features = centers.shape
    if matrices.shape != (n_components, n_features, n_features):
        raise ValueError(
            f"covariances has shape {matrices.shape}, but means make it "
            f"{(n_components, n_features, n_features)}."
        )
    shares = as_weights(weights, n_components)
    if n_components == 0 or not np.all(shares > 0.0):
        raise ValueError("weights must be positive, and there must be one component or more.")
    for values, name in ((centers, "means"), (matrices, "covariances")):
        if not np.all(np.isfinite(values)):
            raise ValueError(f"{name} contains NaN or infinity.")
    check_range(centers, "means")
    diagonals = np.sqrt(np.abs(np.diagonal(matrices, axis1=1, axis2=2)))
    scales = diagonals[:, :, np.newaxis] * diagonals[:, np.newaxis, :]
    if np.any(np.abs(matrices - matrices.transpose(0, 2, 1)) > 1e-6 * scales):
        raise ValueError("covariances must be symmetric matrices.")
    if shares.min() < 1e-200 * shares.max():
        raise ValueError("weights differ by too much: leave out the components that have none.")
    return centers, matrices, shares


def check_range(values: Array, name: str) -> None:
    """Reject infinity, and magnitudes whose squares are not float64 numbers."""
    position = first_out_of_range(values.reshape(-1))
    if position < 0:
        return
    value = values.flat[position]
    if np.isinf(value):
        raise ValueError(
            f"{name} contains infinity: remove it, or mark the entry as unknown with NaN."
        )
    raise ValueError(
        f"{name} contains {value:g}, beyond the largest magnitude of {LARGEST:g}: "
        "rescale the column."
    )


def as_split(known: Any, wanted: Any, n_features: int) -> tuple[Index, Index]:
    """Known and wanted columns: some of each, apart; wanted are all others if None."""
    known_index = as_index(known, n_features, "known")
    if wanted is None:
        wanted_index = np.setdiff1d(np.arange(n_features), known_index)
    else:
        wanted_index = as_index(wanted, n_features, "wanted")
    if len(wanted_index) == 0:
        raise ValueError("nothing is wanted: name at least one column in wanted.")
    if np.intersect1d(known_index, wanted_index).size:
        raise ValueError("a column cannot be both known and wanted.")
    return known_index, wanted_index


def check_number(
    value: Any, name: str, low: float, high: float, *, open_low: bool = False
) -> float:
    """A real setting within bounds."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, not {value!r}.") from None
    if not (low < number if open_low else low <= number) or not number <= high:
        raise ValueError(
            f"{name} must be {'above' if open_low else 'at least'} {low:g} "
            f"and at most {high:g}, not {value!r}."
        )
    return number


def check_count(value: Any, name: str, low: int) -> int:
    """A whole-number setting with a lower bound."""
    number = as_integer(value, name)
    if number < low:
        raise ValueError(f"{name} must be at least {low}, not {value!r}.")
    return number


def as_integer(value: Any, name: str) -> int:
    """A whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, not {value!r}.") from None


def _as_floats(values: ArrayLike, name: str) -> Array:
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values)
        if array.dtype == object and hasattr(values, "to_numpy"):  # frames with NA
            array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if array.dtype.kind == "c":
            raise TypeError
        flags = array.flags
        if array.dtype == np.float64 and flags.c_contiguous and flags.writeable:
            return array
        # Writeable even where the caller's is not: the kernels are compiled
        # for one type of array.
        return np.require(array, np.float64, ["C", "W"])
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold numbers: encode text and categories as numbers first."
        ) from None
