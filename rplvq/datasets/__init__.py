"""Data to try the classifiers on.

The paper's synthetic problems and handwritten digits come with the library. Functions whose names begin with ``fetch``
download data once; those that begin with ``read`` read files that you have.
"""

from rplvq.datasets._cifar10 import fetch_cifar10_covariances
from rplvq.datasets._digits import load_digits_covariances
from rplvq.datasets._polsar import read_polsar
from rplvq.datasets._synthetic import make_syn1, make_syn2, random_bases

__all__ = [
    "fetch_cifar10_covariances",
    "load_digits_covariances",
    "make_syn1",
    "make_syn2",
    "random_bases",
    "read_polsar",
]
