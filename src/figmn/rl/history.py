"""What came of each episode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from figmn._typing import Array


@dataclass
class History:
    """Returns and lengths of the episodes that an agent has learnt from.

    Attributes
    ----------
    returns : list of float
        Sum of rewards of each episode, exploring ones too.
    lengths : list of int
        Steps of each episode.

    Examples
    --------
    >>> from figmn.rl import History
    >>> history = History(returns=[0.0, 8.0, 10.0, 12.0], lengths=[5, 5, 5, 5])
    >>> history.episodes_to_solve(threshold=9.0, window=2)
    1
    """

    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.returns)

    def add(self, total: float, length: int) -> None:
        """Note an episode that has ended."""
        self.returns.append(total)
        self.lengths.append(length)

    def window_means(self, window: int = 100) -> Array:
        """Mean return of each run of ``window`` episodes, of shape (len - window + 1,)."""
        sums = np.concatenate([[0.0], np.cumsum(self.returns)])
        means: Array = (sums[window:] - sums[:-window]) / window
        return means

    def episodes_to_solve(self, threshold: float, window: int = 100) -> int | None:
        """Episodes before the first run of ``window`` whose mean return reaches a threshold.

        None if there is no such run yet.
        """
        reached = np.flatnonzero(self.window_means(window) >= threshold)
        return int(reached[0]) if len(reached) else None

    def plot(self, axes: Any = None, *, label: str | None = None, window: int = 10) -> Any:
        """Draw the learning curve: each return, and the mean of the last ``window``.

        Parameters
        ----------
        axes : matplotlib.axes.Axes or None
            By default new ones, in a figure of their own.
        label : str or None
            Name of the curve, for a legend.
        window : int

        Returns
        -------
        matplotlib.axes.Axes
        """
        if axes is None:
            axes = _new_axes()
        episodes = np.arange(1, len(self) + 1)
        (points,) = axes.plot(episodes, self.returns, ".", alpha=0.3, markersize=4)
        axes.plot(
            episodes[window - 1 :],
            self.window_means(window),
            color=points.get_color(),
            label=label,
        )
        axes.set_xlabel("episode")
        axes.set_ylabel("return")
        return axes


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "A plot needs matplotlib: install it with pip install matplotlib."
        ) from None
    return Figure(figsize=(6.0, 3.5), layout="constrained").add_subplot()
