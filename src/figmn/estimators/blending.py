"""Several ways to predict a class, and how far each is to be trusted."""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import compiled

_FADING = 0.95  # of an prediction's loss, from row to row
_IMPROBABLE = 1e-4
_UNSEEN = 0.5  # rows that count for all successions alike
_TINY = 1e-200


@compiled
def expert_predictions(given: Array, counts: Array, followers: Array, powers: Array) -> Array:
    r"""Probabilities of classes by inputs, by the class before, and by both together.

    The latter as :math:`p(c \mid x, c') \propto p(x \mid c)^a \, p(c \mid c')`.

    Parameters
    ----------
    given : array of shape (N, C)
        By the inputs, :math:`p(c \mid x)`.
    counts, followers : arrays of shape (C,)
        How frequent classes are, in all and after the class of the row before.
    powers : array of shape (P,)
        The powers :math:`a`.

    Returns
    -------
    array of shape (2 + P, N, C)
    """
    n_rows, n_classes = given.shape
    every = np.empty((2 + len(powers), n_rows, n_classes))
    total = _UNSEEN
    for c in range(n_classes):
        total += followers[c]
    for c in range(n_classes):
        following = (followers[c] + _UNSEEN / n_classes) / total
        log_count, log_following = math.log(max(counts[c], _TINY)), math.log(following)
        for n in range(n_rows):
            log_likelihood = math.log(max(given[n, c], _TINY)) - log_count
            every[0, n, c], every[1, n, c] = given[n, c], following
            for a in range(len(powers)):
                every[2 + a, n, c] = powers[a] * log_likelihood + log_following
    for a in range(2, len(every)):
        for n in range(n_rows):
            largest, total = every[a, n, 0], 0.0
            for c in range(n_classes):
                largest = max(largest, every[a, n, c])
            for c in range(n_classes):
                every[a, n, c] = math.exp(every[a, n, c] - largest)
                total += every[a, n, c]
            for c in range(n_classes):
                every[a, n, c] /= total
    return every


@compiled
def add_losses(losses: Array, predictions: Array, actual: int) -> None:
    """Add the losses of predictions, of shape (V, 1, C), to what is left of earlier ones."""
    for v in range(len(losses)):
        loss = -math.log(max(predictions[v, 0, actual], _IMPROBABLE))
        losses[v] = _FADING * losses[v] + loss


@compiled
def blended(predictions: Array, losses: Array) -> Array:
    """Predictions of shape (V, N, C) weighted by the exponentials of their losses' negatives.

    Returns
    -------
    array of shape (N, C)
    """
    n_predictions, n_rows, n_classes = predictions.shape
    least, total = losses[0], 0.0
    for v in range(n_predictions):
        least = min(least, losses[v])
    for v in range(n_predictions):
        total += math.exp(least - losses[v])
    blend = np.empty((n_rows, n_classes))
    for v in range(n_predictions):
        trust = math.exp(least - losses[v]) / total
        for n in range(n_rows):
            for c in range(n_classes):
                so_far = blend[n, c] if v > 0 else 0.0
                blend[n, c] = so_far + trust * predictions[v, n, c]
    return blend
