"""Data to try the classifiers on: the paper's synthetic problems, handwritten digits, and radar scenes of yours."""

from rplvq.datasets._maps import classify_scene
from rplvq.datasets._polsar import PolsarScene, read_polsar
from rplvq.datasets._problems import load_digits_covariances, make_syn1, make_syn2, random_bases

__all__ = [
    "PolsarScene", "classify_scene", "load_digits_covariances", "make_syn1", "make_syn2", "random_bases", "read_polsar",
]  # fmt: skip
