"""Data to try the classifiers on: the paper's synthetic problems, and handwritten digits. Nothing is downloaded."""

from rplvq.datasets._digits import load_digits_covariances
from rplvq.datasets._synthetic import make_syn1, make_syn2, random_bases

__all__ = ["load_digits_covariances", "make_syn1", "make_syn2", "random_bases"]
