"""What the paper reports, value by value: Pinto & Engel, tables 1 to 5 and running text.

Accuracies are in per cent and times in seconds, each with its deviation where the paper
gives one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from paper.datasets import NAMES
from paper.statistics import Spread

SETTINGS: Final = "delta = 0.5, beta = 4.9e-324"


class Shape(NamedTuple):
    """Numbers of rows, columns and classes."""

    rows: int
    columns: int
    classes: int


SHAPES: Final = {
    "breast-cancer": Shape(286, 9, 2),
    "pima-diabetes": Shape(768, 8, 2),
    "glass": Shape(214, 9, 7),
    "ionosphere": Shape(351, 34, 2),
    "iris": Shape(150, 4, 3),
    "labor-neg-data": Shape(57, 16, 2),
    "soybean": Shape(683, 35, 19),
    "mnist": Shape(70_000, 784, 10),
    "cifar10": Shape(60_000, 3072, 10),
}


def _by_set(*pairs: tuple[float, float]) -> dict[str, Spread]:
    return {name: Spread(*pair) for name, pair in zip(NAMES, pairs, strict=True)}


ACCURACY: Final = {
    "forest": _by_set(
        (69.6, 9.1), (75.8, 3.5), (79.9, 5.0), (92.9, 3.6), (95.3, 4.5), (89.7, 14.3), (93.0, 3.1)
    ),
    "network": _by_set(
        (75.2, 6.5), (74.2, 4.9), (53.8, 7.4), (92.6, 2.4), (95.3, 5.5), (89.7, 14.3), (93.0, 2.4)
    ),
    "linear-svm": _by_set(
        (69.3, 7.5), (77.5, 4.4), (62.7, 7.8), (88.0, 3.5), (96.7, 4.7), (93.3, 11.7), (94.0, 2.2)
    ),
    "rbf-svm": _by_set(
        (70.6, 1.5), (65.1, 0.4), (68.8, 8.7), (93.5, 3.0), (96.7, 3.5), (93.3, 8.6), (88.7, 3.0)
    ),
    "figmn": _by_set(
        (71.4, 7.4), (73.0, 4.5), (65.4, 4.9), (92.6, 3.8), (97.3, 3.4), (94.7, 8.6), (91.5, 5.4)
    ),
}
AVERAGE_ACCURACY: Final = {
    "forest": 85.2,
    "network": 82.0,
    "linear-svm": 83.1,
    "rbf-svm": 82.4,
    "figmn": 83.7,
}
"""As printed; IGMN has the figures of FIGMN."""

BELOW_FOREST: Final = {
    "forest": (),
    "network": ("glass",),
    "linear-svm": ("glass",),
    "rbf-svm": ("pima-diabetes", "glass", "soybean"),
    "figmn": ("glass",),
}
"""Where a model is significantly worse than the random forest."""

COMPONENTS: Final = _by_set(
    (14.2, 1.9), (19.4, 1.3), (15.9, 1.1), (74.4, 1.4), (2.7, 0.7), (12.0, 1.2), (42.6, 2.2)
)

FOREST_OVER_IGMN_BYTES: Final = 6.0


class Times(NamedTuple):
    """Seconds; None where the paper has none."""

    igmn_training: float
    figmn_training: float
    igmn_testing: float | None
    figmn_testing: float


TIMES: Final = {
    "mnist": Times(32_544.69, 1_629.81, 3_836.06, 230.92),
    "cifar10": Times(2_758_252.0, 15_545.05, None, 795.98),
}

CLUSTERING_COMPONENTS: Final = 208
CLUSTERING_HOURS: Final = 7.5
EM_ITERATION_HOURS: Final = 1.3

DIGITS_ACCURACY: Final = 93.0

EPISODES: Final = {
    "Cart-Pole": {
        "FIGMN": Spread(108.80, 22.49),
        "Sarsa(lambda)": Spread(557.0, 0.0),
        "TRPO": Spread(2103.50, 3542.86),
        "Duel DDQN": Spread(51.00, 7.24),
    },
    "Mountain Car": {
        "FIGMN": Spread(403.83, 79.23),
        "Sarsa(lambda)": Spread(1872.50, 6.04),
        "TRPO": Spread(4064.00, 246.25),
    },
    "Acrobot": {
        "FIGMN": Spread(301.60, 69.12),
        "Sarsa(lambda)": Spread(742.0, 0.0),
        "TRPO": Spread(2930.67, 1627.26),
        "Duel DDQN": Spread(31.0, 0.0),
    },
}
"""Episodes until a task is solved; a deviation of zero where the paper gives none."""
