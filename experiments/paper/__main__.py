"""The command ``python -m paper``: see ``command`` for its options."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the experiments, or say what to install."""
    try:
        import click
        import matplotlib
        import rich
    except ImportError as error:
        raise SystemExit(
            f"The experiments need {error.name}: in the checkout, install it with "
            "`pip install '.[experiments]'`."
        ) from None
    del click, matplotlib, rich
    from paper.command import paper

    # A program that is told to end takes its workers with it, as one that is interrupted does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    paper(prog_name="python -m paper")


if __name__ == "__main__":
    main()
