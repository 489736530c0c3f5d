"""Errors of predictions, and whether intervals hold what they promise."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn import datasets as sklearn_sets
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from figmn import MixtureRegressor
from quality.report import table

PEERS = {
    "k-NN": lambda: KNeighborsRegressor(),
    "ridge": lambda: BayesianRidge(),
    "random forest": lambda: RandomForestRegressor(random_state=0),
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "MLP": lambda: MLPRegressor(random_state=0, max_iter=500),
}


def problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs and outputs; developed on the first, the others were not looked at before."""
    rng = np.random.default_rng(7)
    angles = rng.uniform(-np.pi, np.pi, (20_000, 2))
    reach = np.cos(angles[:, 0]) + np.cos(angles.sum(axis=1))
    steps = rng.uniform(0, 10, (4000, 1))
    waves = np.sign(np.sin(steps[:, 0])) + 0.2 * rng.normal(size=4000)
    linnerud = sklearn_sets.load_linnerud()
    noisy = rng.normal(size=(3000, 8))
    return {
        "diabetes": sklearn_sets.load_diabetes(return_X_y=True),
        "friedman1": sklearn_sets.make_friedman1(3000, noise=1.0, random_state=1),
        "friedman2": sklearn_sets.make_friedman2(3000, noise=50.0, random_state=1),
        "friedman3": sklearn_sets.make_friedman3(3000, noise=0.1, random_state=1),
        "arm": (angles, reach + 0.02 * rng.normal(size=20_000)),
        "linnerud": (linnerud.data, linnerud.target[:, 0]),
        "square wave": (steps, waves),
        "linear, noise grows": (
            noisy,
            noisy[:, 0] + np.exp(0.7 * noisy[:, 1]) * rng.normal(size=3000),
        ),
        "iris petals": (sklearn_sets.load_iris().data[:, :3], sklearn_sets.load_iris().data[:, 3]),
        "s-curve": sklearn_sets.make_s_curve(5000, noise=0.1, random_state=1),
    }


def run() -> str:
    """Four fifths to learn and one to judge by."""
    header = [
        "problem", "N", "D", "ours: RMSE", "of k-NN's", "within 90 % intervals", "nats", "K", "s",
        *(f"{name}: RMSE" for name in PEERS), "ridge: nats",
    ]  # fmt: skip
    lines = []
    for name, (rows, targets) in problems().items():
        order = np.random.default_rng(0).permutation(len(rows))
        rows, targets = rows[order], targets[order]
        count = int(0.8 * len(rows))
        known, rest = slice(count), slice(count, None)
        start = time.perf_counter()
        ours = MixtureRegressor().fit(rows[known], targets[known])
        seconds = time.perf_counter() - start
        mean = ours.predict(rows[rest])
        low, high = ours.predict_quantiles(rows[rest], [0.05, 0.95]).T
        covered = 100.0 * np.mean((low < targets[rest]) & (targets[rest] < high))
        error = _rmse(mean, targets[rest])
        peers, ridge_nats = _peers(rows, targets, known, rest)
        line = [
            name, f"{count:,}", str(rows.shape[1]),
            f"{error:.3g}", f"{error / peers[0]:.2f}", f"{covered:.1f}",
            f"{_nats(ours, rows[rest], targets[rest]):.2f}", str(ours.n_components_),
            f"{seconds:.1f}", *(f"{peer:.3g}" for peer in peers), f"{ridge_nats:.2f}",
        ]  # fmt: skip
        lines.append(line)
        print(*line, flush=True)
    return table(header, lines)


def _peers(
    rows: np.ndarray, targets: np.ndarray, known: slice, rest: slice
) -> tuple[list[float], float]:
    errors, nats = [], np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, peer in PEERS.items():
            model = make_pipeline(StandardScaler(), peer()).fit(rows[known], targets[known])
            errors.append(_rmse(model.predict(rows[rest]), targets[rest]))
            if name == "ridge":
                mean, std = model.predict(rows[rest], return_std=True)
                squares = ((targets[rest] - mean) / std) ** 2
                nats = float(np.mean(-0.5 * squares - np.log(std) - 0.5 * np.log(2 * np.pi)))
    return errors, nats


def _rmse(predicted: np.ndarray, targets: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - targets) ** 2)))


def _nats(model: MixtureRegressor, rows: np.ndarray, targets: np.ndarray) -> float:
    """Mean log predictive density of the outputs given the inputs."""
    joint = model.mixture_.log_density(np.column_stack([rows, targets]))
    inputs = model.mixture_.log_density(np.column_stack([rows, np.full(len(rows), np.nan)]))
    return float(np.mean(joint - inputs))
