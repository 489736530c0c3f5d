"""Batch EM on a bounded number of rows, for a mixture that is to need no settings.

====================  =======================================================
``em``                expectation-maximisation with shrunken covariances
``selection``         how many components, and how much shrinkage
``climb``             components split step by step
``slices``            long work that can be done in parts
``gaps``              stand-ins for missing entries
====================  =======================================================

All of it works in standard units: columns of mean zero and variance one.
"""
