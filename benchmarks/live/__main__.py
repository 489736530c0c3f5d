"""Run all parts, or those that are named."""

from __future__ import annotations

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

from live import batch, picture, rows, streams
from live.entrants import KINDS

PARTS = {"rows": rows.run, "streams": streams.run, "batch": batch.run, "picture": picture.run}
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "live.png"


def main() -> None:
    """Print each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--rows", type=int, default=20_000, help="at most so many of each stream")
    parser.add_argument(
        "--dimensions", type=int, nargs="+", choices=rows.CLASSES, default=list(rows.CLASSES)
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--peer-rows", type=int, default=6000, help="rows for river's models; 0 leaves them out"
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="past its first 5000 rows, a run stops then"
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="runs, of which the least time of a row counts"
    )
    parser.add_argument(
        "--before", type=Path, help="the src folder of a version to show beside this one"
    )
    parser.add_argument("--plot", type=Path, default=PICTURE, help="where to put the picture")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: choose of {', '.join(PARTS)}")
    with threadpool_limits(1):
        for part in options.parts or PARTS:
            PARTS[part](options)
            print(flush=True)


if __name__ == "__main__":
    main()
