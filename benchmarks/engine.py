"""Many dimensions: learning, inference, memory and growth, beside what others do.

Run it with ``make engine`` (some ten minutes). Ratios are of figures measured side by
side in one run, each the best of several, since other work on the machine only ever
adds time. Writes the table to docs/engine.md and the plot to docs/images/growth-rates.png
unless ``--print-only`` is given.
"""

from __future__ import annotations

import argparse
import platform
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import blas
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from figmn import Mixture
from figmn.reference import IGMN
from timing import best_seconds

DOCS = Path(__file__).parent.parent / "docs"
# So wide that a cluster stays whole while its component is young: what a component
# has not seen yet shrinks with every row.
SCALE = 40.0
BLOCK = 64  # rows of the matrix product that the machine's rate is taken from


def gaussian_rows(n_rows: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Correlated rows."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_features))
    rows[:, 1:] += 0.5 * rows[:, :-1]
    return rows


def cluster_rows(n_rows: int, n_features: int, n_clusters: int, seed: int = 0) -> np.ndarray:
    """Rows of clusters that are far apart, of equal frequency."""
    centers = np.random.default_rng(99).normal(size=(n_clusters, n_features)) * 200.0
    which = np.arange(n_rows) % n_clusters
    return centers[which] + gaussian_rows(n_rows, n_features, seed)


def grown(n_features: int, n_components: int, n_rows: int) -> Mixture:
    """Mixture that has learnt rows of as many clusters."""
    mixture = Mixture(n_features, scale=SCALE, beta=0.0 if n_components == 1 else 1e-6)
    mixture.learn(cluster_rows(n_rows, n_features, n_components))
    assert mixture.n_components == n_components
    return mixture


# -- What ours is beside -----------------------------------------------------------------


def blas2_seconds(n_features: int) -> float:
    """One row of the point-by-point algorithm: dsymv and dsyr on one triangle.

    The division by 1 - w is left to a scalar factor.
    """
    precision = np.asfortranarray(np.eye(n_features))
    rows = gaussian_rows(20, n_features)
    mean, mass, factor = rows[0].copy(), float(n_features), 1.0

    def learn() -> None:
        nonlocal mass, factor
        for row in rows:
            deviation = row - mean
            product = blas.dsymv(factor, precision, deviation)
            distance = deviation @ product
            mass += 1.0
            share = 1.0 / mass
            mean[:] += share * deviation
            alpha = -share / (1.0 + share * distance) / factor
            blas.dsyr(alpha, product, a=precision, overwrite_a=1)
            factor /= 1.0 - share

    learn()
    return best_seconds(learn, 20) / len(rows)


def blas2_many_seconds(n_features: int, n_components: int) -> float:
    """One row of that algorithm with many components, of which one gains from it."""
    precisions = [np.asfortranarray(np.eye(n_features)) for _ in range(n_components)]
    rows = gaussian_rows(3, n_features)

    def learn() -> None:
        for row in rows:
            for precision in precisions:
                product = blas.dsymv(1.0, precision, row)
                row @ product
            blas.dsyr(-1e-9, product, a=precision, overwrite_a=1)

    return best_seconds(learn, 3) / len(rows)


def product_seconds(n_features: int) -> float:
    """The machine's own time for 4 D^2 flops: two rows of a block times a square matrix."""
    rows, matrix = gaussian_rows(BLOCK, n_features), gaussian_rows(n_features, n_features)
    return 2.0 * best_seconds(lambda: rows @ matrix, 40) / BLOCK


def reference_seconds(n_features: int) -> float:
    """One row of the covariance-form IGMN, on LAPACK."""
    rows = gaussian_rows(4, n_features)
    reference = IGMN(np.ones(n_features), beta=0.0).learn(rows[:1])
    return best_seconds(lambda: reference.learn(rows[1:]), 4) / 3


def em_iteration(rows: np.ndarray, n_components: int) -> float:
    """One iteration of scikit-learn's EM, from runs of five and of one."""

    def run(iterations: int) -> float:
        model = GaussianMixture(
            n_components,
            max_iter=iterations,
            tol=0.0,
            reg_covar=1e-2,
            init_params="random",
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return best_seconds(lambda: model.fit(rows), 2)

    return (run(5) - run(1)) / 4.0


def em_seconds(rows: np.ndarray, n_rows: int, n_components: int) -> float:
    """One iteration on many rows and components, extrapolated from few.

    It takes a time that is proportional to the components, and for each of them
    linear in the rows.
    """
    few, many, sample = len(rows) // 4, len(rows), 4
    short, long = em_iteration(rows[:few], sample), em_iteration(rows, sample)
    slope = (long - short) / (many - few)
    return n_components / sample * (short + slope * (n_rows - few))


# -- Figures -----------------------------------------------------------------------------


def one_component(n_features: int) -> dict[str, float]:
    """Learning and evaluation with K = 1, once the component is old."""
    mixture = grown(n_features, 1, 3 * n_features)
    # Whole numbers of blocks and of folds, so that no work is left to the next run.
    rows = cluster_rows(1152 if n_features < 2000 else 576, n_features, 1, seed=1)
    figures: dict[str, float] = {"D": n_features}
    for threads in (1, 2):
        with threadpool_limits(threads):
            mixture.learn(rows)
            ours = best_seconds(lambda: mixture.learn(rows), 20) / len(rows)
            rate = product_seconds(n_features)
            figures[f"learn{threads}"] = ours * 1e6
            figures[f"product{threads}"] = rate * 1e6
            figures[f"share{threads}"] = 100.0 * rate / ours
            if threads == 1:
                figures["blas2"] = blas2_seconds(n_features) * 1e6
                figures["over_blas2"] = figures["blas2"] / figures["learn1"]
    figures["one"] = best_seconds(lambda: [mixture.learn_one(row) for row in rows[:128]], 2) / 128
    figures["one"] *= 1e6
    evaluate = best_seconds(lambda: mixture.log_density(rows), 3) / len(rows)
    figures["density"] = evaluate * 1e6
    figures["reference"] = reference_seconds(n_features) * 1e6 if n_features < 2000 else np.nan
    figures["over_reference"] = figures["reference"] / figures["learn2"]
    em = em_iteration(rows, 1) / len(rows)
    figures["em"] = em * 1e6
    return figures


def learning(n_components: int, n_features: int = 784) -> tuple[Mixture, np.ndarray, float]:
    """A mixture of many components, each forty rows old, further rows, and the time of one."""
    mixture = grown(n_features, n_components, 40 * n_components)
    rows = cluster_rows(10 * n_components, n_features, n_components, seed=1)
    ours = best_seconds(lambda: mixture.copy().learn(rows), 2) / len(rows)
    copying = best_seconds(mixture.copy, 2) / len(rows)
    return mixture, rows, (ours - copying) * 1e6


def many_components(n_components: int, one: dict[str, float], em: float) -> dict[str, float]:
    """Learning and evaluation with many components, beside others' times for each of them."""
    mixture, rows, microseconds = learning(n_components)
    n_features = mixture.n_features
    _, arrays = mixture.to_state()
    return {
        "K": n_components,
        "learn": microseconds,
        "density": best_seconds(lambda: mixture.log_density(rows), 2) / len(rows) * 1e6,
        "blas2": blas2_many_seconds(n_features, n_components) * 1e6,
        "product": one["product2"] / 2.0 * n_components,
        "reference": one["reference"] * n_components,
        "em": em * n_components,
        "megabytes": sum(array.nbytes for array in arrays.values()) / 1e6,
        "dense": n_components * n_features**2 * 8 / 1e6,
    }


def slope(sizes: list[int], times: list[float]) -> float:
    """Exponent of growth, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth() -> dict[str, tuple[list[int], list[float]]]:
    """Seconds in all against rows, and for each row against components and variables."""
    lengths, counts, widths = (
        [4000, 8000, 16000, 32000],
        [10, 20, 50, 100, 200],
        [256, 512, 1024, 2048],
    )
    rows = cluster_rows(lengths[-1], 256, 4)
    by_length = []
    for length in lengths:
        start = Mixture(256, scale=SCALE, beta=1e-6).learn(rows[:2000])
        by_length.append(best_seconds(lambda: start.copy().learn(rows[:length]), 4))  # noqa: B023
    by_count = [learning(count)[2] for count in counts]
    by_width = []
    for width in widths:
        mixture, chunk = grown(width, 1, 3 * width), cluster_rows(576, width, 1, seed=1)
        by_width.append(best_seconds(lambda: mixture.learn(chunk), 4) / 576 * 1e6)  # noqa: B023
    return {
        "rows N (D = 256, K = 4)": (lengths, by_length),
        "components K (D = 784)": (counts, by_count),
        "variables D (K = 1)": (widths, by_width),
    }


YOUNG = """
import numpy as np
from figmn import Mixture

def peak():  # of this program alone, which the system's resource usage is not
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

before = peak()
mixture = Mixture(3072, scale=10.0, beta=1e-6)
for turn in range({turns}):
    noise = np.random.default_rng(turn + 1)
    for k in range(0, {count}, 50):
        centers = np.random.default_rng(1000 + k).normal(size=(50, 3072)) * 100.0
        mixture.learn(centers + noise.normal(size=centers.shape))
assert mixture.n_components == {count}, mixture.n_components
print(peak(), before)
"""


def young_memory() -> tuple[float, float]:
    """Peak memory, in MiB, of a thousand components of twenty rows each, and before them."""
    code = YOUNG.format(turns=20, count=1000)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak, before = done.stdout.split()
    return float(peak), float(before)


def digits(rows: np.ndarray) -> dict[str, float]:
    """One pass over MNIST, beside one iteration of EM with as many components."""
    scaled = rows / 255.0
    start = time.perf_counter()
    mixture = Mixture(784, scale=0.3, delta=1.6, beta=0.01).learn(scaled)
    ours = time.perf_counter() - start
    em = em_seconds(scaled[:8000], len(rows), mixture.n_components)
    return {"K": mixture.n_components, "pass": ours, "em": em, "share": ours / em}


def one_wanted(rows: np.ndarray, n_learnt: int, **settings: float) -> dict[str, float]:
    """Prediction of one variable in the middle from all the others, K = 10."""
    import gmr

    mixture = Mixture(rows.shape[1], max_components=10, **settings).learn(rows[:n_learnt])
    wanted = [rows.shape[1] // 2]
    known = np.delete(np.arange(rows.shape[1]), wanted)
    queries = np.ascontiguousarray(rows[n_learnt:, known])
    mixture.infer(queries[:10], known, wanted)  # factors, once for each state
    ours = len(queries) / best_seconds(lambda: mixture.infer(queries, known, wanted).std(), 10)
    other = gmr.GMM(
        mixture.n_components,
        priors=mixture.weights,
        means=mixture.means,
        covariances=mixture.covariances,
    )
    with np.errstate(invalid="ignore"):  # its densities underflow in so many dimensions
        theirs = 20 / best_seconds(lambda: other.predict(known, queries[:20]), 1)
    return {"K": mixture.n_components, "ours": ours, "gmr": theirs, "faster": ours / theirs}


# -- Report ------------------------------------------------------------------------------

ONE = {
    "D": ("D", "{:.0f}"),
    "learn1": ("learn, 1 thread", "{:.1f}"),
    "blas2": ("BLAS-2, 1 thread", "{:.1f}"),
    "over_blas2": ("times faster", "{:.1f}"),
    "share1": ("% of product rate, 1 thread", "{:.0f}"),
    "learn2": ("learn, 2 threads", "{:.1f}"),
    "share2": ("% of product rate, 2 threads", "{:.0f}"),
    "one": ("learn_one", "{:.0f}"),
    "density": ("log_density", "{:.1f}"),
    "reference": ("IGMN", "{:,.0f}"),
    "over_reference": ("times faster", "{:,.0f}"),
    "em": ("an EM iteration", "{:.1f}"),
}
MANY = {
    "K": ("K", "{:.0f}"),
    "learn": ("learn, us", "{:.0f}"),
    "density": ("log_density, us", "{:.0f}"),
    "blas2": ("BLAS-2, us", "{:.0f}"),
    "product": ("a product with K matrices, us", "{:.0f}"),
    "reference": ("IGMN, us (K times that of one)", "{:,.0f}"),
    "em": ("an EM iteration on 60,000 rows, us (extrapolated)", "{:.0f}"),
    "megabytes": ("model, MB", "{:.0f}"),
    "dense": ("K matrices, MB", "{:.0f}"),
}


def table(results: list[dict[str, float]], headings: dict[str, tuple[str, str]]) -> str:
    """Results as a Markdown table."""
    lines = ["| " + " | ".join(title for title, _ in headings.values()) + " |"]
    lines.append("|" + "---|" * len(headings))
    for result in results:
        cells = [
            "-" if np.isnan(result[name]) else form.format(result[name])
            for name, (_, form) in headings.items()
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(curves: dict[str, tuple[list[int], list[float]]], path: Path) -> None:
    """Growth on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(curves), figsize=(11, 3.4), layout="constrained")
    for axis, (name, (sizes, times)) in zip(axes, curves.items(), strict=True):
        axis.loglog(sizes, times, "o-", color="tab:blue")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()
        axis.set_title(f"slope {slope(sizes, times):.2f}")
        axis.set_xlabel(name)
        axis.set_ylabel("seconds in all" if name.startswith("rows") else "microseconds a row")
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def sections(options: argparse.Namespace):
    """The parts of the report, one after the other."""
    say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    say("K = 1 ...")
    ones = [one_component(n_features) for n_features in options.dimensions]
    yield (
        "## One component\n\nMicroseconds a row. The product rate is that of a block of "
        f"{BLOCK} rows times a square matrix,\ncounting 4 D^2 flops a row. BLAS-2: `dsymv` and "
        "`dsyr` on one triangle, with a lazy scalar factor.\nIGMN: the covariance form on LAPACK. "
        "EM: one iteration of `GaussianMixture`.\n\n" + table(ones, ONE)
    )
    say("K = 10, 50, 200 ...")
    em = em_seconds(cluster_rows(8000, 784, 4), 60_000, 1) / 60_000 * 1e6
    one = next((o for o in ones if o["D"] == 784), None) or one_component(784)
    yield (
        "## Many components, D = 784\n\nA row, two threads; forty to fifty rows a component. "
        "Beside it BLAS-2 (`dsymv`\nfor each, `dsyr` for one), and a row times as many dense "
        "matrices at the product rate.\n\n"
        + table([many_components(count, one, em) for count in (10, 50, 200)], MANY)
    )
    say("growth ...")
    curves = growth()
    lines = [f"- {name}: {slope(*curve):.2f}" for name, curve in curves.items()]
    yield "## Growth\n\nExponents, by least squares on logarithms.\n\n" + "\n".join(lines)
    if not options.print_only:
        plot(curves, DOCS / "images" / "growth-rates.png")
        yield "![Growth with rows, components and variables](images/growth-rates.png)"
    say("memory ...")
    peak, before = young_memory()
    yield (
        "## Memory\n\nA thousand components of twenty rows each, D = 3072: the process takes "
        f"{peak:.0f} MiB at its peak, {before:.0f} of them before it starts to learn."
    )
    say("inference ...")
    lines = []
    apart = cluster_rows(16000, 784, 10)
    result = one_wanted(apart, 10000, scale=SCALE, beta=1e-6)
    lines.append(("clusters that are far apart", result))
    rows = digit_rows(options)
    if rows is not None:
        say("MNIST ...")
        scaled = rows[:30000] / 255.0
        lines.append(("MNIST", one_wanted(scaled, 20000, scale=0.3, delta=1.6, beta=0.01)))
    text = "\n".join(
        f"- {name}: {r['ours']:,.0f} rows a second, gmr {r['gmr']:.1f} ({r['faster']:,.0f} times)"
        for name, r in lines
    )
    yield f"## One wanted variable, D = 784, K = 10, two threads\n\n{text}"
    if rows is not None:
        r = digits(rows)
        yield (
            f"## MNIST\n\nOne pass over {len(rows):,} digits: {r['pass']:.0f} s for K = "
            f"{r['K']:.0f} (delta 1.6, beta 0.01, scale 0.3).\nOne iteration of EM with as many "
            f"components, extrapolated from 8000 digits and 4 components:\n{r['em']:.0f} s. So a "
            f"pass takes {r['share']:.2f} of an iteration."
        )


def digit_rows(options: argparse.Namespace) -> np.ndarray | None:
    """MNIST's training digits, if they can be had."""
    if options.no_mnist:
        return None
    from paper.datasets import load_images

    return load_images("mnist", report=lambda text: print(text, file=sys.stderr)).train


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[64, 256, 784, 1024, 3072])
    parser.add_argument("--no-mnist", action="store_true", help="leave out what needs MNIST")
    parser.add_argument("--print-only", action="store_true", help="write no files")
    options = parser.parse_args()
    parts = [
        "# Many dimensions, in figures\n\nWritten by `make engine` on "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}; seeds are fixed. Ratios hold for one run on one machine."
    ]
    print(parts[0], flush=True)
    for part in sections(options):
        parts.append(part)
        print("\n" + part, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory of the benchmark itself: {peak:.0f} MiB")
    if not options.print_only:
        (DOCS / "engine.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
