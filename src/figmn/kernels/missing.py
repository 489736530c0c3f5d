r"""What the known entries of a row say about the missing ones.

With the missing set ``m``, the weighted whitener's columns
:math:`A = \operatorname{diag}(v)^{-1/2} T_{\cdot m}` satisfy
:math:`A^\top A = \Lambda_{mm}`. A QR factorisation of ``A`` gives, without
ever squaring a condition number, the conditional mean of the missing entries
(a least-squares solution), their conditional covariance
:math:`\Lambda_{mm}^{-1} = R^{-1} R^{-\top}`, and the marginal likelihood of
the known ones: :math:`\log|S_{kk}| = \log|S| + \log|\Lambda_{mm}|`.
"""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import LARGEST, inlined, internal
from figmn.kernels.factor import residuals

# What is left of a column of unit size, after those before it: nothing, and then this.
_NOTHING, _UNRESOLVED = 1e-150, float(np.finfo(np.float64).eps)


@inlined
def find_missing(points: Array, t: int, out: IntArray) -> int:
    """Write the positions of NaN in row ``t`` to ``out``; return how many there are."""
    count = int(np.int64(0))  # not a literal: functions would be compiled for its type, too
    for i in range(len(out)):
        if math.isnan(points[t, i]):
            out[count] = i
            count += 1
    return count


@internal
def complete(
    whiteners: Array,
    variances: Array,
    k: int,
    deviations: Array,
    missing: IntArray,
    n_missing: int,
    residual: Array,
    systems: Array,
) -> tuple[float, float]:
    """Fill the missing entries of a deviation with their conditional mean.

    Parameters
    ----------
    whiteners : array of shape (K, D, D)
    variances : array of shape (K, D)
    k : int
    deviations, residual : arrays of shape (K, D)
        Row ``k``: point minus mean, whose missing entries are overwritten, and
        the residuals ``T e`` of the completed deviation, which are written.
    missing : int array of shape (D,)
        The missing positions stand in its first ``n_missing`` places.
    systems : array of shape (K, D, D + 2)
        Scratch. On return, the upper triangle of entry ``k`` holds ``R`` with
        its columns divided by the last column: on their own scales, the
        squares of a column's entries need not be numbers.

    Returns
    -------
    distance : float
        The squared distance of the known entries under their marginal.
    log_determinant : float
        ``log|Lambda_mm|``, to be added to ``log|S|``.
    """
    _, n_features = deviations.shape
    for m in range(n_missing):
        deviations[k, missing[m]] = 0.0
    residuals(whiteners, variances, k, deviations, residual)
    for r in range(n_features):
        scale = 1.0 / math.sqrt(variances[k, r])
        for m in range(n_missing):
            systems[k, r, m] = whiteners[k, r, missing[m]] * scale
        systems[k, r, n_missing] = -residual[k, r] * scale
    for m in range(n_missing):
        unit = 0.0
        for r in range(n_features):
            unit = max(unit, abs(systems[k, r, m]))
        for r in range(n_features):
            systems[k, r, m] /= unit
        systems[k, m, n_features + 1] = unit
    _triangularise(systems, k, n_features, n_missing)
    log_det = 0.0
    for m in range(n_missing - 1, -1, -1):
        unit = systems[k, m, n_features + 1]
        total = systems[k, m, n_missing]
        for j in range(m + 1, n_missing):
            total -= systems[k, m, j] * deviations[k, missing[j]]
        value = total / systems[k, m, m]
        if not abs(value) <= LARGEST * unit:  # a known entry beyond all measure
            value = -LARGEST * unit if value < 0.0 else LARGEST * unit
        deviations[k, missing[m]] = value
        log_det += 2.0 * (math.log(abs(systems[k, m, m])) + math.log(unit))
    for m in range(n_missing):
        deviations[k, missing[m]] /= systems[k, m, n_features + 1]
    return residuals(whiteners, variances, k, deviations, residual), log_det


@internal
def _triangularise(systems: Array, k: int, n_rows: int, n_columns: int) -> None:
    """Householder QR of the first columns, applied to one right-hand side too."""
    for c in range(n_columns):
        norm = 0.0
        for r in range(c, n_rows):
            norm += systems[k, r, c] * systems[k, r, c]
        norm = math.sqrt(norm)
        if not norm > _NOTHING:  # variables that cannot be told apart in float64
            systems[k, c, c] = _UNRESOLVED
            continue
        pivot = -norm if systems[k, c, c] > 0.0 else norm
        head = systems[k, c, c] - pivot
        # The reflector is (head, column below the diagonal); half its squared
        # length is -pivot * head, a product of positive numbers.
        denominator = -pivot * head
        for d in range(c + 1, n_columns + 1):
            product = head * systems[k, c, d]
            for r in range(c + 1, n_rows):
                product += systems[k, r, c] * systems[k, r, d]
            factor = product / denominator
            systems[k, c, d] -= factor * head
            for r in range(c + 1, n_rows):
                systems[k, r, d] -= factor * systems[k, r, c]
        systems[k, c, c] = pivot


@internal
def root_column(systems: Array, k: int, missing: IntArray, which: int, out: Array) -> None:
    """Write column ``which`` of ``R^-1``, a root of the conditional covariance.

    ``systems`` is as :func:`complete` left it. Row ``k`` of ``out``, of shape
    (K, D), is zero at the known positions.
    """
    _, n_features = out.shape
    for i in range(n_features):
        out[k, i] = 0.0
    for m in range(which, -1, -1):
        total = 1.0 if m == which else 0.0
        for j in range(m + 1, which + 1):
            total -= systems[k, m, j] * out[k, missing[j]]
        out[k, missing[m]] = total / systems[k, m, m]
    for m in range(which + 1):
        out[k, missing[m]] /= systems[k, m, n_features + 1]
