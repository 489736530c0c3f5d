"""How probable it is to meet a row as strange as this one."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc, gammaln

from figmn._typing import Array, IntArray
from figmn.engines.responsibilities import log_sum

_TINY = float(np.finfo(np.float64).tiny)


def log_tail(distances: Array, log_joint: Array, weights: Array, n_known: IntArray) -> Array:
    r"""Log probability that a draw from the mixture has a lower density than a row.

    A draw from component ``j`` has the log density :math:`c_j - d^2 / 2` or
    more, with :math:`d^2` chi-square distributed. So it falls below the row's
    log density ``t`` with probability at most
    :math:`\sum_j p_j P(d^2 > 2 (c_j - t))`; equality holds for components
    that do not overlap.

    Parameters
    ----------
    distances, log_joint : arrays of shape (N, K)
        Squared distances, and log densities times weights.
    weights : array of shape (K,)
    n_known : int array of shape (N,)
        How many entries of each row are known.

    Returns
    -------
    array of shape (N,)
    """
    peaks = log_joint + 0.5 * distances
    excess = np.maximum(2.0 * (peaks - log_sum(log_joint)), 0.0)
    tails = log_chi_square_tail(excess, n_known[:, np.newaxis])
    # A weight may be too small for a number, and then counts for nothing.
    total: Array = log_sum(np.log(np.maximum(weights, _TINY)) + tails)[:, 0]
    return np.minimum(total, 0.0)


def log_chi_square_tail(x: Array, degrees: IntArray) -> Array:
    """Log of the chi-square survival function, without underflow.

    Parameters
    ----------
    x : array of shape (N, K)
    degrees : int array of shape (N, 1)
        Degrees of freedom. With none, the tail is everything.
    """
    half = np.maximum(degrees, 1) / 2.0
    tail = gammaincc(half, x / 2.0)
    far = tail < 1e-290
    logs = np.log(np.where(far, 1.0, tail))
    if far.any():
        logs = np.where(far, _log_expansion(half, np.where(far, x / 2.0, 1e3)), logs)
    return np.where(degrees > 0, logs, 0.0)


def _log_expansion(half: Array, distant: Array) -> Array:
    """Log of the leading terms of the incomplete gamma function's expansion, far out."""
    rest = np.log1p(np.maximum((half - 1.0) / distant, -0.5))
    logs: Array = (half - 1.0) * np.log(distant) - distant - gammaln(half) + rest
    return logs
