"""Experiment 3: time against the number of dimensions, for IGMN and FIGMN."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn import Mixture
from figmn.reference import IGMN
from paper.experiment import (
    Check,
    Experiment,
    Figure,
    Plan,
    Result,
    Results,
    Section,
    Table,
    Unit,
)
from paper.plots import Curve, log_log
from paper.statistics import exponent
from paper.text import seconds, times
from paper.timing import best_seconds, projected_seconds
from paper.typing import Array

DIMENSIONS: Final = tuple(2**power for power in range(11))
N_TRAIN, N_TEST = 900, 100
_FIT_FROM: Final = 128  # below it, what a row costs beside its arithmetic bends the curves


# -- Work ----------------------------------------------------------------------------------


def units(plan: Plan) -> list[Unit]:
    """A unit for each number of dimensions."""
    budget = 3600.0 if plan.full else 0.8
    return [Unit(f"{d}", {"n_inputs": d, "budget": budget, "seed": plan.seed}) for d in DIMENSIONS]


def measure(n_inputs: int, budget: float, seed: int, repeats: int = 3) -> Result:
    """Time of learning 900 rows, and of predicting an output for 100 others.

    Parameters
    ----------
    n_inputs : int
    budget : float
        Seconds for IGMN's training, and for its testing: what it does not do in them is
        projected.
    seed : int
    repeats : int
        Of FIGMN's runs, the best of which counts.
    """
    rows = gaussian_rows(N_TRAIN + N_TEST, n_inputs + 1, seed)
    train, test = rows[:N_TRAIN], rows[N_TRAIN:, :n_inputs]
    known, wanted = np.arange(n_inputs), np.array([n_inputs])
    scale = train.std(axis=0)

    def learn() -> Mixture:
        return Mixture(n_inputs + 1, scale=scale, delta=1.0, beta=0.0).learn(train)

    mixture = learn()  # compiled, if it was not before
    igmn = IGMN(scale, delta=1.0, beta=0.0).learn(train[:1])
    training = projected_seconds(igmn.learn_one, train[1:], N_TRAIN, budget)
    testing = projected_seconds(lambda row: igmn.predict(row, known, wanted), test, N_TEST, budget)

    def predict() -> Array:
        mixture.reconfigure()  # forgets the factors of the run before
        return mixture.infer(test, known, wanted).mean()

    predict()
    return {
        "figmn_training": best_seconds(learn, repeats),
        "figmn_testing": best_seconds(predict, repeats),
        "igmn_training": training.seconds,
        "igmn_testing": testing.seconds,
        "igmn_trained_rows": training.n_timed + 1,
        "igmn_tested_rows": testing.n_timed,
    }


def gaussian_rows(n_rows: int, n_features: int, seed: int) -> Array:
    """Rows of one Gaussian whose neighbouring variables are correlated."""
    rows: Array = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    rows[:, 1:] += 0.5 * rows[:, :-1]
    return rows


# -- What came out -------------------------------------------------------------------------


def _series(results: Results, what: str) -> list[float]:
    return [results[f"{d}"][what] for d in DIMENSIONS]


def _slope(results: Results, what: str) -> float:
    start = DIMENSIONS.index(_FIT_FROM)
    return exponent(DIMENSIONS[start:], _series(results, what)[start:])


def _figure(results: Results) -> Figure:
    panels = {}
    for phase, title in (
        ("training", f"Training, {N_TRAIN} rows"),
        ("testing", f"Testing, {N_TEST} rows"),
    ):
        panels[title] = [
            Curve(
                f"{label}, slope {_slope(results, f'{key}_{phase}'):.1f}",
                DIMENSIONS,
                _series(results, f"{key}_{phase}"),
            )
            for key, label in (("igmn", "IGMN"), ("figmn", "FIGMN"))
        ]
    return Figure(
        "growing-dimensions",
        "Seconds against the number of dimensions D, both axes logarithmic (paper: figure 1). "
        f"Slopes are fitted from D = {_FIT_FROM} on.",
        log_log(panels, "dimensions D", "seconds"),
    )


def _table(results: Results) -> Table:
    def cells(d: int) -> tuple[str, ...]:
        r = results[f"{d}"]
        return (
            f"{d}",
            *(seconds(r[what]) for what in ("igmn_training", "figmn_training")),
            times(r["igmn_training"] / r["figmn_training"]),
            *(seconds(r[what]) for what in ("igmn_testing", "figmn_testing")),
            times(r["igmn_testing"] / r["figmn_testing"]),
            f"{r['igmn_trained_rows']} + {r['igmn_tested_rows']}",
        )

    return Table(
        f"Time of training on {N_TRAIN} rows and of testing on {N_TEST}",
        (
            "D",
            "IGMN training",
            "FIGMN training",
            "times faster",
            "IGMN testing",
            "FIGMN testing",
            "times faster",
            "rows timed, IGMN",
        ),
        [cells(d) for d in DIMENSIONS],
        (
            "The paper shows these as a figure without numbers. Where fewer rows were timed "
            f"than {N_TRAIN} + {N_TEST}, the rest is projected: with one component every row "
            "takes the same time.",
        ),
    )


def present(plan: Plan, results: Results) -> Section:
    """The paper's figure, with numbers."""
    slow, fast = (_slope(results, f"{name}_training") for name in ("igmn", "figmn"))
    return Section(
        "Growing dimensions",
        (
            f"{N_TRAIN + N_TEST} rows of one Gaussian in D = 1, 2, 4, ... 1024 inputs and one "
            "output, delta = 1, beta = 0: a single component, so only dimensions matter. "
            "Testing predicts the output from the inputs. FIGMN learns the rows as one chunk; "
            "below 256 variables row by row, above by blocks of rows with the same result, and "
            "until a component has seen D / 2 rows it holds rows instead of a matrix.",
        ),
        (_figure(results), _table(results)),
        (
            Check(
                "FIGMN's training time grows more slowly with D than IGMN's",
                f"exponents {fast:.1f} and {slow:.1f} from D = {_FIT_FROM} on",
                fast < slow,
            ),
        ),
    )


EXPERIMENT: Final = Experiment(
    "dimensions",
    "time against the number of dimensions, 1 to 1024 (the paper's figure)",
    units,
    measure,
    present,
)
