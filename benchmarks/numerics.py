"""How rounding errors grow with the length of a stream and the condition of its data.

Run it with ``make numerics``. One component learns Gaussian rows in 20 skewed
dimensions. Compared with the batch covariance, accumulated in extended
precision, are our factors, the plain recursion on the entries of the precision
matrix, kept symmetric, and NumPy's inverse of the batch covariance. Then the same
for blocks of rows in many dimensions.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numba import njit

from figmn import Mixture
from figmn.engines import choice
from paper.datasets import load_images

N_FEATURES = 20
CHUNK, SMALL = 100_000, 400  # rows at a time, to be learnt by strides and one by one


# With the compiler flags of figmn's own kernels.
@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def plain_recursion(points, mean, precision, mass):  # type: ignore[no-untyped-def]
    """Sherman-Morrison on the entries of the precision matrix, symmetric by construction."""
    n_features = points.shape[1]
    product = np.empty(n_features)
    for t in range(points.shape[0]):
        deviation = points[t] - mean
        distance = 0.0
        for i in range(n_features):
            total = 0.0
            for j in range(n_features):
                total += precision[i, j] * deviation[j]
            product[i] = total
            distance += total * deviation[i]
        mass += 1.0
        w = 1.0 / mass
        factor = w / (1.0 + w * distance)
        for i in range(n_features):
            mean[i] += w * deviation[i]
            for j in range(i + 1):
                entry = (precision[i, j] - factor * product[i] * product[j]) / (1.0 - w)
                precision[i, j] = entry
                precision[j, i] = entry
    return mass


def chunks(n_rows: int, condition: float):
    """Rows whose covariance has a given condition number, in skewed directions."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(N_FEATURES, N_FEATURES)))[0]
    roots = np.sqrt(np.geomspace(1.0, 1.0 / condition, N_FEATURES))
    for start in range(0, n_rows, CHUNK):
        count = min(CHUNK, n_rows - start)
        yield (rng.normal(size=(count, N_FEATURES)) * roots) @ rotation.T


def measure(n_rows: int, condition: float) -> dict[str, float]:
    """Errors after one stream."""
    scale = condition**-0.5
    mixture = Mixture(N_FEATURES, scale=scale, beta=0.0)
    singly = Mixture(N_FEATURES, scale=scale, beta=0.0)
    total = np.zeros(N_FEATURES, dtype=np.longdouble)
    products = np.zeros((N_FEATURES, N_FEATURES), dtype=np.longdouble)
    mean = precision = None
    mass = 1.0
    for number, rows in enumerate(chunks(n_rows, condition)):
        mixture.learn(rows)
        for start in range(0, len(rows), SMALL):
            singly.learn(rows[start : start + SMALL])
        extended = rows.astype(np.longdouble)
        total += extended.sum(axis=0)
        products += extended.T @ extended
        if number == 0:
            mean, precision = rows[0].copy(), np.eye(N_FEATURES) / scale**2
        mass = plain_recursion(rows[1:] if number == 0 else rows, mean, precision, mass)
    center = total / n_rows
    covariance = products / n_rows - np.outer(center, center)
    covariance += np.eye(N_FEATURES, dtype=np.longdouble) * scale**2 / n_rows

    def distance_from_identity(matrix: np.ndarray) -> float:
        product = matrix.astype(np.longdouble) @ covariance
        return float(np.abs(product - np.eye(N_FEATURES)).max())

    ours = mixture.covariances[0]
    return {
        "covariance": float(np.abs(ours - covariance).max() / np.abs(covariance).max()),
        "log-determinant": float(
            abs(mixture.log_determinants[0] - np.linalg.slogdet(covariance.astype(float))[1])
        ),
        "ours": distance_from_identity(mixture.precisions[0]),
        "singly": distance_from_identity(singly.precisions[0]),
        "plain": distance_from_identity(precision),
        "inverse": distance_from_identity(np.linalg.inv(covariance.astype(float))),
    }


def errors_in_blocks(name: str, rows: np.ndarray, scale: float, lazily: bool) -> str:
    """One line of the second table: a single component, learnt in chunks of 10,000 rows."""
    n_rows, n_features = rows.shape
    choice.LEAST_BLOCK_FEATURES = 1 if lazily else 10**9
    mixture = Mixture(n_features, scale=scale, beta=0.0)
    products = np.zeros((n_features, n_features), dtype=np.longdouble)
    center = rows.mean(axis=0)
    for start in range(0, n_rows, 10_000):
        chunk = rows[start : start + 10_000]
        mixture.learn(chunk)
        products += (chunk - center).T @ (chunk - center)
    covariance = products / n_rows + np.eye(n_features) * scale**2 / n_rows
    double = covariance.astype(float)
    identity = np.eye(n_features)
    ours = np.abs(mixture.precisions[0] @ double - identity).max()
    inverse = np.abs(np.linalg.inv(double) @ double - identity).max()
    way = "blocks" if lazily else "strides"
    cells = (
        f"{np.linalg.cond(double):.0e}",
        f"{np.abs(mixture.covariances[0] - double).max() / np.abs(double).max():.1e}",
        f"{abs(mixture.log_determinants[0] - np.linalg.slogdet(double)[1]):.1e}",
        f"{ours:.1e}",
        f"{inverse:.1e}",
    )
    return f"| {name} | {n_features} | {n_rows:.0e} | {way} | " + " | ".join(cells) + " |"


def measure_blocks(with_digits: bool) -> None:
    """Print the second table."""
    print(
        "\n| data | D | rows | learnt by | condition | covariance, rel. | log-det, abs. |"
        " max abs(precision x cov - I) | numpy.linalg.inv |"
    )
    print("|" + "---|" * 9)
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(100, 100)) / 10.0
    rows = rng.normal(size=(10**6, 100)) @ mixing
    for lazily in (False, True):
        print(errors_in_blocks("Gaussian", rows, 1.0, lazily), flush=True)
    if with_digits:
        images = load_images("mnist", report=lambda text: print(text, file=sys.stderr))
        rows = np.hstack([images.train / 255.0, np.eye(10)[images.train_target]])
        for lazily in (False, True):
            print(errors_in_blocks("MNIST, one-hot labels", rows, 0.3, lazily), flush=True)


def main() -> None:
    """Measure and print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=1e7, help="longest stream, in rows")
    parser.add_argument("--no-mnist", action="store_true", help="leave out what needs MNIST")
    options = parser.parse_args()
    lengths = [length for length in (10**4, 10**5, 10**6, 10**7) if length <= options.most]
    print(
        "| condition | rows | covariance, rel. | log-det, abs. | max abs(precision x cov - I)"
        " | the same, row by row | plain recursion | numpy.linalg.inv |"
    )
    print("|" + "---|" * 8)
    for condition in (1e4, 1e8, 1e12):
        for length in lengths:
            print(f"condition {condition:g}, {length} rows ...", file=sys.stderr)
            cells = [f"{error:.1e}" for error in measure(length, condition).values()]
            print(f"| {condition:.0e} | {length:.0e} | " + " | ".join(cells) + " |", flush=True)
    measure_blocks(not options.no_mnist)


if __name__ == "__main__":
    main()
