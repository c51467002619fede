"""Refusing to answer: errors at 80 % coverage and at full coverage, and probabilities before and after calibration.

The data are BCI 2a (session 1 trains, session 2 tests; also re-centred, with the same settings for all nine subjects)
and ETH-80 (C = 8, whole images), with the paper's settings. Curves are made from the certainties of the test data,
for each subject and with one threshold for the trials of all subjects ("pooled"). Thresholds that cross-validation sets
on the training data are reported with the coverage that they reach. Calibration holds out a fifth of the training data
and fits sigma2 to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from examples.beyond import recentering
from examples.paper import eth80
from examples.paper.bci2a import PAPER_SETTINGS
from examples.paper.data import Split, load_bci2a
from examples.paper.runner import Job, Record
from rplvq import RejectOption, RiemannianLVQ
from rplvq.inspection import accuracy_reject_curve, calibrate_sigma2, reliability
from rplvq.presets import plrsq_annealed, plrsq_const

__all__ = ["calibrate", "jobs", "refuse", "smoke"]

CRITERIA = ("posterior", "relative_distance")
DATA = ("bci2a", "bci2a-recentred", "eth80")
STAGES = ("as trained", "calibrated")


def problems(
    data: str, repetition: int, subjects: list[int], max_epochs: int | None
) -> list[tuple[RiemannianLVQ, Split]]:
    """Return classifier and data for each subject, or for the one split of ETH-80."""
    if data == "eth80":
        model = plrsq_annealed(eth80.SIGMA2, eth80.PROTOTYPES[8], max_epochs or 100, random_state=repetition)
        return [(model, eth80.split("full256", 8, repetition))]
    if data == "bci2a-recentred":
        return [
            (
                recentering.model("one for all", subject, repetition, max_epochs),
                recentering.seen(load_bci2a(subject), "transductive", 10.0),
            )
            for subject in subjects
        ]
    chosen = [PAPER_SETTINGS[subject - 1] for subject in subjects]
    return [
        (plrsq_const(sigma2, int(count), max_epochs or int(epochs), random_state=repetition), load_bci2a(int(subject)))
        for subject, count, epochs, sigma2 in chosen
    ]


def refuse(
    *,
    repetition: int,
    method: str,
    data: str,
    subjects: list[int],
    coverage: float = 0.8,
    max_epochs: int | None = None,
) -> Record:
    """Train, order the test samples by certainty, and set a threshold in training; ``method`` is the criterion.

    Returns
    -------
    dict
        Means over the problems of: error (at full coverage), error_at_coverage (at ``coverage`` of the test data), area
        (under the curve), reached_coverage and reached_error (of the threshold from the training data). Also
        pooled_error_at_coverage, for the samples of all problems together.
    """
    rows, pooled = [], []
    for model, split in problems(data, repetition, subjects, max_epochs):
        option = RejectOption(model, coverage=coverage, criterion=method).fit(split.X_train, split.y_train)
        answers, labels = option.estimator_.predict(split.X_test), option.predict(split.X_test)
        certainty = option.certainty(split.X_test)
        curve = accuracy_reject_curve(split.y_test, answers, certainty)
        pooled.append((split.y_test == answers, certainty))
        kept = labels == answers
        rows.append(
            {
                "error": 1 - curve.at(1.0),
                "error_at_coverage": 1 - curve.at(coverage),
                "area": curve.area,
                "reached_coverage": float(np.mean(kept)),
                "reached_error": float(np.mean(labels[kept] != split.y_test[kept])),
            }
        )
    right, certainties = (np.concatenate(parts) for parts in zip(*pooled, strict=True))
    together = accuracy_reject_curve(np.ones(len(right), dtype=bool), right, certainties)
    return {
        **{name: float(np.mean([row[name] for row in rows])) for name in rows[0]},
        "pooled_error_at_coverage": 1 - together.at(coverage),
    }


def calibrate(*, repetition: int, method: str, data: str, subjects: list[int], max_epochs: int | None = None) -> Record:
    """Train on four fifths, and score the probabilities before or after fitting sigma2 to the last fifth.

    Returns
    -------
    dict
        log_loss and ece of the test data, and sigma2, as means over the problems.
    """
    rows = []
    for model, split in problems(data, repetition, subjects, max_epochs):
        train, held, y, y_held = train_test_split(
            split.X_train, split.y_train, test_size=0.2, stratify=split.y_train, random_state=repetition
        )
        fitted = model.fit(train, y)
        fitted = calibrate_sigma2(fitted, held, y_held) if method == "calibrated" else fitted
        found = reliability(split.y_test, fitted.predict_proba(split.X_test), fitted.classes_)
        rows.append({"log_loss": found.log_loss, "ece": found.ece, "sigma2": fitted.sigma2_})
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: each criterion, and probabilities before and after calibration, with five splits of ETH-80."""
    found = []
    for data in DATA:
        options: dict[str, Any] = {"data": data, "subjects": list(range(1, 10))} | ({"max_epochs": 2} if quick else {})
        for seed in range(5 if data == "eth80" and not quick else 1):
            found += [Job(f"rejection-{data}", criterion, seed, options, refuse) for criterion in CRITERIA]
            found += [Job(f"calibration-{data}", name, seed, options, calibrate) for name in STAGES]
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: one subject, one epoch."""
    options = {"data": "bci2a", "subjects": [3], "max_epochs": 1}
    return [
        Job("rejection-bci2a", "posterior", 0, options, refuse),
        Job("calibration-bci2a", "calibrated", 0, options, calibrate),
    ]
