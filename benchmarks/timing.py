"""How the benchmarks measure time."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_seconds(action: Callable[[], object], repeats: int) -> float:
    """Least time of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)
