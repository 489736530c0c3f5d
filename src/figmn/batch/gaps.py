"""Stand-ins for missing entries, drawn from what the known ones say."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import Array, Index
from figmn.batch.slices import Slices, cost
from figmn.engines import factors
from figmn.engines.responsibilities import normalised
from figmn.engines.rowwise.dense_components import DenseComponents

_FEW_ROWS: Final = 64  # to draw at a time


def drawn(components: DenseComponents, rows: Array, random: np.random.Generator) -> Slices[Array]:
    """Rows with NaN replaced by draws given the known entries.

    For each row a component is drawn by its posterior. The conditional draw then
    is the conditional mean and the error that such a mean makes on a row drawn
    from the component itself, with the same entries missing: such errors have
    the conditional covariance.
    """
    result = rows.copy()
    incomplete = np.flatnonzero(np.isnan(rows).any(axis=1))
    n_components, n_features = components.n_components, components.n_features
    for start in range(0, len(incomplete), _FEW_ROWS):
        here = incomplete[start : start + _FEW_ROWS]
        gappy = rows[here]
        posteriors = normalised(components.log_joint(gappy))
        limits = np.cumsum(posteriors, axis=1)
        chosen = (random.random((len(gappy), 1)) > limits).sum(axis=1)
        chosen = np.minimum(chosen, n_components - 1)
        shares = np.eye(n_components)[chosen]
        likes = _sampled(components, chosen, random)
        masked = np.where(np.isnan(gappy), np.nan, likes)
        error = likes - components.filled(masked, shares)
        result[here] = components.filled(gappy, shares) + error
        yield cost(10.0 * len(here) * n_components * n_features**3)
    return result


def _sampled(components: DenseComponents, chosen: Index, random: np.random.Generator) -> Array:
    """A row from each of the components chosen, of shape (N, D)."""
    noise = random.standard_normal((len(chosen), components.n_features))
    roots = factors.covariance_roots(*components.factors())
    rows: Array = components.means[chosen] + np.einsum("nij,nj->ni", roots[chosen], noise)
    return rows
