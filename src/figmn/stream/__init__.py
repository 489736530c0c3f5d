"""The stream: what happens to a mixture as rows come in.

====================  =======================================================
``driver``            the algorithm: advance, create, prune
``settings_to_rule``  what the settings mean for it
``phases``            warming up and streaming
``warm_up``           rows held back, and the model they lead to; shared with classes
``row_buffer``        such rows
``start``             what a mixture without settings starts from, by EM
``retained_sample``   rows that stand for all of the stream
``core``              :class:`MixtureCore`: the mixture without validation
``packing``           everything learnt as named arrays for a file
====================  =======================================================
"""

from figmn.stream.core import MixtureCore

__all__ = ["MixtureCore"]
