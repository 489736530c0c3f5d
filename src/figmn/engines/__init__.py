"""Engines: how components are held, and how rows change them.

====================  =======================================================
``interface``         :class:`Components` and :class:`Engine`: what a mixture needs
``choice``            the one place that decides between the following
``rowwise``           row by row, in a compiled loop
``strides``           many rows at a time, where it is certain that nothing is lost
``blocks``            matrix products and low-rank components, for many variables
``regression``        how wanted variables follow from known ones
``responsibilities``  distances and densities of rows, and posteriors from them
``factors``           covariances, precisions and reordering, from factors
``scale``             the scale of columns
====================  =======================================================

Every engine offers ``advance(start) -> (stop, event)`` on a chunk of rows. It hands back
when a row starts a component or has left one to be removed; the driver of the stream
(:mod:`figmn.stream.driver`) does that, and lets it advance again.
"""
