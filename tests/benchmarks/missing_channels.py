"""Channels that are missing in the test session of BCI 2a: predictions with gaps beside a fit without the channels.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python -m tests.benchmarks.missing_channels

Prints the table of docs/reliability.md: mean accuracy and log-loss over five subjects, with one set of missing channels
per subject and number.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.metrics import log_loss

from examples.paper.data import load_bci2a
from rplvq import RiemannianLVQ
from rplvq.manifolds import MissingChannels
from rplvq.protocols import Array

SUBJECTS = (1, 3, 7, 8, 9)
NUMBERS = (1, 4, 8)
METRICS = (
    "affine_invariant",
    "tangent",
    "whitened_tangent",
    "log_euclidean",
    "log_cholesky",
    "wasserstein",
    "euclidean",
)


def scores(model: RiemannianLVQ, X: Array, y: Array) -> tuple[float, float]:
    """Return accuracy and log-loss."""
    return model.score(X, y), log_loss(y, model.predict_proba(X), labels=model.classes_)


def rows_of(metric: str, subject: int) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the scores of a subject, by the way in which missing channels are treated and their number."""
    X, y, X_test, y_test = load_bci2a(subject)
    model = RiemannianLVQ(metric, random_state=0).fit(X, y)
    found = {("none missing", 0): scores(model, X_test, y_test)}
    learned = model.missing_channels_
    mean = MissingChannels(learned.reference, learned.center)
    for number in NUMBERS:
        missing = np.random.default_rng([subject, number, 0]).choice(X.shape[1], number, replace=False)
        kept = np.setdiff1d(np.arange(X.shape[1]), missing)
        gaps = X_test.copy()
        gaps[:, missing], gaps[:, :, missing] = np.nan, np.nan
        found["predict", number] = scores(model, gaps, y_test)
        found["regression from the mean alone", number] = scores(model, mean.fill(gaps), y_test)
        refit = RiemannianLVQ(metric, random_state=0).fit(X[:, kept][:, :, kept], y)
        found["fit without the channels", number] = scores(refit, X_test[:, kept][:, :, kept], y_test)
    return found


def main() -> None:
    """Print the rows of the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metrics", nargs="*", default=METRICS)
    warnings.simplefilter("ignore")
    for metric in parser.parse_args().metrics:
        by_subject = [rows_of(metric, subject) for subject in SUBJECTS]
        mean = {key: np.mean([found[key] for found in by_subject], axis=0) for key in by_subject[0]}
        whole = "{:.3f} / {:.2f}".format(*mean.pop(("none missing", 0)))
        for way in dict.fromkeys(way for way, _ in mean):
            cells = ["{:.3f} / {:.2f}".format(*mean[way, number]) for number in NUMBERS]
            print(f"| {metric.replace('_', ' ')} | {whole} | {way} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
