"""Run all parts, or those that are named."""

from __future__ import annotations

import argparse

from threadpoolctl import threadpool_limits

from quality import classification, density, growth, regression, streams, variables
from quality.report import publish

PARTS = {
    "density": density.run,
    "variables": variables.run,
    "growth": growth.run,
    "classification": classification.run,
    "regression": regression.run,
    "streams": streams.run,
}


def main() -> None:
    """Print each part and put it into docs/quality.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--print-only", action="store_true", help="leave docs/quality.md alone")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: choose of {', '.join(PARTS)}")
    # One thread: on small batches more of them only get in each other's way.
    with threadpool_limits(1):
        for part in arguments.parts or PARTS:
            publish(part, PARTS[part](), write=not arguments.print_only)


if __name__ == "__main__":
    main()
