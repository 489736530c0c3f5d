"""Live use: each row is asked about and then learnt, one at a time, on one thread.

Run it with ``make live``, or some of it with ``make live ARGS="rows --kinds density"``. A user
of a stream waits for the slowest row, so tables show the longest times beside the medians.

============  ===============================================================
``data``      the rows
``entrants``  what takes part: the estimators, and river's models beside them
``rows``      the time of each row
``streams``   the classifier along streams, beside an adaptive random forest
``batch``     fitting and predicting at once, beside scikit-learn
``trace``     one stream by one version of the package, in a process of its own
``picture``   the time of each row of that, before and now
============  ===============================================================
"""
