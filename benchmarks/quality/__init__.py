"""How good the defaults are, beside batch models and river's online ones.

Run it with ``make quality``, or some of it with ``make quality ARGS=density``. Each
part prints a table and writes it into docs/quality.md.
"""
