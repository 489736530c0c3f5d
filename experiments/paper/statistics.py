"""The statistics of the tables: spread, paired t-tests, exponents of growth."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy import special

from paper.typing import ArrayLike

SIGNIFICANT: Final = 0.05
"""The level of the paper's tests."""


class Spread(NamedTuple):
    """Mean, and standard deviation with n - 1 in its denominator."""

    mean: float
    deviation: float


class TTest(NamedTuple):
    """Mean difference, its t statistic, and the two-sided p-value."""

    difference: float
    statistic: float
    p_value: float

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant at the paper's level."""
        return self.p_value < SIGNIFICANT


def spread(values: ArrayLike) -> Spread:
    """Mean and standard deviation of values of shape (N,)."""
    sample = np.asarray(values, dtype=np.float64)
    return Spread(float(sample.mean()), float(sample.std(ddof=1)) if len(sample) > 1 else 0.0)


def paired_t_test(first: ArrayLike, second: ArrayLike, overlap: float = 0.0) -> TTest:
    """Student's t-test on the differences of pairs.

    Parameters
    ----------
    first, second : array-like of shape (N,)
        Scores of two models on the same folds.
    overlap : float, default=0.0
        Rows to test over rows to train, of a fold. Folds share most of their training
        rows, so their scores are not independent: the variance of the mean then counts
        as (1/N + overlap) times that of a fold, not 1/N (Nadeau & Bengio, 2003). With 0
        it is the plain test.

    Returns
    -------
    TTest
        Of first minus second.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    count = len(differences)
    mean, deviation = spread(differences)
    if count < 2:
        raise ValueError("a paired t-test takes at least two pairs.")
    # Folds that all differ by the same amount leave nothing but rounding.
    if deviation <= 1e-12 * np.abs(differences).max():
        certain = mean != 0.0
        return TTest(mean, np.copysign(np.inf, mean) if certain else 0.0, 0.0 if certain else 1.0)
    statistic = mean / (deviation * np.sqrt(1.0 / count + overlap))
    p_value = 2.0 * special.stdtr(count - 1, -abs(statistic))
    return TTest(mean, float(statistic), float(p_value))


def exponent(sizes: ArrayLike, times: ArrayLike) -> float:
    """Exponent of a power law through times, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
