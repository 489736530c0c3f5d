"""What the settings mean for learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import chdtri

from figmn._typing import Array
from figmn.batch.selection import Preferences
from figmn.kernels.rule import Rule
from figmn.settings import Settings

if TYPE_CHECKING:
    from figmn.stream.start import Growth

NOVELTY: Final = 1e-6
"""Tail probability below which a row is novel to a mixture that has started from EM."""

_FIXED_BETA: Final = 0.1  # where only delta is given
# In the long run all mass is that of 1.44 half-lives of rows.
_HALF_A_ROW: Final = 0.5 * float(np.log(2.0))
_UNBOUNDED: Final = int(np.iinfo(np.int64).max)
_PARSIMONY_ON_THE_WAY, _PARSIMONY_AT_THE_END = 0.5, 1.0


def rule_of(
    settings: Settings, n_features: int, scale: Array | None, growth: Growth | None = None
) -> Rule:
    """What the learning loops need to know.

    Parameters
    ----------
    settings : Settings
    n_features : int
    scale : array of shape (D,) or None
        The columns' standard deviations; with None they follow the stream.
    growth : Growth or None
        How a mixture that has started from EM goes on.
    """
    beta = _FIXED_BETA if isinstance(settings.beta, str) else settings.beta
    bound = _UNBOUNDED if settings.max_components is None else settings.max_components
    if growth is not None:
        beta, scale, bound = NOVELTY, growth.scale, min(bound, growth.most)
    thresholds = np.full(n_features + 1, np.inf)
    if beta > 0.0:
        thresholds[1:] = chdtri(np.arange(1, n_features + 1), beta)
    half_life = settings.half_life
    return Rule(
        thresholds=thresholds,
        scale=np.ones(n_features) if scale is None else scale,
        adaptive=scale is None,
        delta=settings.width,
        prune_age=min(settings.prune_age, _UNBOUNDED),
        prune_mass=settings.prune_mass,
        max_components=min(bound, _UNBOUNDED),
        printed_rule=settings.update == "paper",
        retention=settings.retention,
        faded=0.0 if half_life is None else _HALF_A_ROW / max(half_life, 1.0),
    )


def preferences_of(settings: Settings, *, final: bool) -> Preferences:
    """What a start by EM is to look for; ``final`` if no further rows are known to come."""
    parsimony = settings.parsimony
    if parsimony is None:
        # A longer stream will support more components.
        parsimony = _PARSIMONY_AT_THE_END if final else _PARSIMONY_ON_THE_WAY
    return Preferences(settings.max_components, settings.shrinkage, parsimony)
