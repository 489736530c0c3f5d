"""Rows that stand for all of a stream, for a mixture to be fitted anew when it has changed."""

from __future__ import annotations

from typing import Final, Self

import numpy as np

from figmn._typing import Array
from figmn.engines.interface import Components
from figmn.kernels.sampling import keep_highest, uniform
from figmn.stream.row_buffer import RowBuffer

_REVIEWS: Final = 1.2  # rows against those at the last review, when it is time for the next
_MOVED: Final = 0.1  # of all weight, between components, since they were fitted
_RESHAPED: Final = 0.5  # nats a column, by which their densities have changed


class RetainedSample:
    r"""A fixed number of rows of a stream, of any length so far.

    A priority sample (Duffield, Lund & Thorup, 2007): a row of weight :math:`a` has rank
    :math:`a / u` with :math:`u` uniform, the highest ranks are kept, and a row that is
    kept stands for the weight :math:`\max(a, \tau)`, where :math:`\tau` is the highest rank
    left out. Sums over it are unbiased for sums over the stream. The numbers
    :math:`u` follow from a row's position, so the same stream gives the same sample.

    Parameters
    ----------
    rows : array of shape (M, D)
    weights, ranks : array of shape (M,)
    passed : float
        The highest rank left out.
    seen : int
        Rows of the stream so far.
    review_at : int
        Rows after which it is time for a review.
    shares, log_dets : arrays of shape (K,)
        Weights and log-determinants of the components when they were fitted, or last
        compared with a fit.
    """

    def __init__(
        self,
        rows: Array,
        weights: Array,
        ranks: Array,
        passed: float,
        seen: int,
        review_at: int,
        shares: Array,
        log_dets: Array,
    ) -> None:
        self.rows = rows
        self.weights = weights
        self.ranks = ranks
        self.passed = passed
        self.seen = seen
        self.review_at = review_at
        self.shares = shares
        self.log_dets = log_dets

    @classmethod
    def of(cls, first: RowBuffer, fitted: Components) -> Self:
        """Sample of a stream that has begun with some rows, to which components were fitted."""
        count = len(first)
        ranks = first.weights / np.array([uniform(i) for i in range(count)])
        return cls(
            first.rows.copy(),
            first.weights.copy(),
            ranks,
            0.0,
            count,
            _following(count),
            fitted.weights,
            fitted.log_dets.copy(),
        )

    def until_review(self) -> int:
        """Rows to come until the next review."""
        return self.review_at - self.seen

    def learn(self, rows: Array, weights: Array) -> bool:
        """Let further rows take the places of some; whether it is time for a review."""
        self.passed = keep_highest(
            rows, weights, self.seen, self.rows, self.weights, self.ranks, self.passed
        )
        self.seen += len(rows)
        if self.seen < self.review_at:
            return False
        self.review_at = _following(self.seen)
        return True

    def has_moved(self, components: Components) -> bool:
        """Whether components are no longer what was fitted.

        Weight has moved between them: half the sum of the differences (total variation). Or
        they have become wider or narrower, by their log-determinants.
        """
        shares, log_dets = components.weights, components.log_dets
        count = max(len(shares), len(self.shares))
        now, then = (np.pad(s, (0, count - len(s))) for s in (shares, self.shares))
        if 0.5 * np.abs(now - then).sum() > _MOVED:
            return True
        both = slice(min(len(shares), len(self.shares)))
        changes = 0.5 * np.abs(log_dets[both] - self.log_dets[both]) / self.rows.shape[1]
        return bool(shares[both] @ changes > _RESHAPED)

    def note(self, components: Components) -> None:
        """Take components as fitted to the stream so far."""
        self.shares, self.log_dets = components.weights, components.log_dets.copy()

    def buffer(self) -> RowBuffer:
        """The rows, each with the weight that it stands for."""
        return RowBuffer(self.rows, np.maximum(self.weights, self.passed))

    def with_zeros(self, n_new: int) -> RetainedSample:
        """The same with further columns of zeros."""
        return RetainedSample(
            np.hstack([self.rows, np.zeros((len(self.rows), n_new))]),
            self.weights,
            self.ranks,
            self.passed,
            self.seen,
            self.review_at,
            self.shares,
            self.log_dets,
        )


def _following(count: int) -> int:
    return int(np.ceil(_REVIEWS * count))
