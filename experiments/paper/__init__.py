"""The paper's experiments, ours beside theirs.

=================  =========================================================
``experiment``     what an experiment is, and what it hands to the report
``published``      the figures that the paper reports
``accuracy``       1: IGMN and FIGMN agree; accuracy on seven data sets
``high``           2: MNIST and CIFAR-10, time
``dimensions``     3: time against the number of dimensions
``clustering``     4: clustering MNIST, beside batch EM
``digits``         5: classification of MNIST in one pass
``reinforcement``  6: reinforcement learning
``stream``         what the method does, in a picture and two tables
``statistics``     spread, t-tests, exponents
``runner``         does the work, and resumes it
``store``          results on disk
``report``         HTML and Markdown
``datasets``       seven small sets, bundled; images from a cache or a network
``command``        options of the command line
``screen``         progress bars and tables
=================  =========================================================

Run them with ``PYTHONPATH=experiments python -m paper``, in a checkout of figmn.
"""
