"""The program ``figmn``.

====================  =======================================================
``app``               commands and their options
``screen``            progress bars and tables
====================  =======================================================
"""

from __future__ import annotations

import signal


def main() -> None:
    """Run the program, or say what to install."""
    try:
        import click
        import matplotlib
        import rich
    except ImportError as error:
        raise SystemExit(
            f"The command figmn needs {error.name}: install it with `pip install 'figmn[cli]'`."
        ) from None
    del click, matplotlib, rich
    from figmn.cli.app import figmn

    # A program that is told to end takes its workers with it, as one that is interrupted does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    figmn()
