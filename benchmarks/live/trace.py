"""The time of each row of one stream, by the version of the package that is imported.

``python -m live.trace times.npy --rows 20000`` needs no more than the package, so that a
version from before can be measured too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from live.data import make_rows
from live.entrants import KINDS
from live.rows import compile_kernels, time_rows

N_FEATURES: Final = 16
_BENCHMARKS: Final = Path(__file__).parents[1]


def times_of(source: Path, n_rows: int, repeats: int) -> np.ndarray:
    """Seconds of each row by the version in a folder, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "times.npy"
        folders = os.pathsep.join(map(str, (source.resolve(), _BENCHMARKS)))
        command = [sys.executable, "-m", "live.trace", str(path)]
        subprocess.run(
            [*command, "--rows", str(n_rows), "--repeats", str(repeats)],
            env={**os.environ, "PYTHONPATH": folders},
            check=True,
        )
        return np.load(path)


def main() -> None:
    """Measure a density, and write the times into a file."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    density = KINDS["density"]
    with threadpool_limits(1):
        compile_kernels(density, options.rows, N_FEATURES)
        items = density.items(make_rows(options.rows, N_FEATURES))
        runs = [time_rows(density.make(), density, items) for _ in range(options.repeats)]
        np.save(options.path, np.min(runs, axis=0))


if __name__ == "__main__":
    main()
