"""MOABB's evaluations of the pipelines in the folder ``pipelines``, on MOABB's simulated dataset.

The simulated dataset is noise by design. Its scores lie around chance and only show that every pipeline runs in each
kind of evaluation. :mod:`examples.ecosystem.moabb` is for real EEG. This module needs the extra ``eeg``.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

from examples.paper.runner import Job, Record

PIPELINES = Path(__file__).parent / "pipelines"
EVALUATIONS = ("WithinSession", "CrossSession", "CrossSubject")
PARADIGMS = {"LeftRightImagery": ("left_hand", "right_hand"), "MotorImagery": ("left_hand", "right_hand", "feet")}
NAMES = (
    "MDM",
    "RiemannianLVQ, affine-invariant",
    "RiemannianLVQ, Log-Euclidean",
    "RiemannianLVQ, augmented covariances",
    "RiemannianLVQ, filter bank",
)


def jobs(quick: bool) -> list[Job]:
    """Return the jobs of every pipeline in every evaluation, with two classes (ROC AUC) and with three (accuracy)."""
    size = {"n_subjects": 2 if quick else 3, "n_sessions": 2}
    return [
        Job(
            f"moabb-{kind}-{paradigm}",
            name,
            0,
            # The bands of the filter bank are for the sampling frequency of BNCI2014_001.
            {"kind": kind, "paradigm": paradigm, "size": size | ({"sfreq": 250} if "filter bank" in name else {})},
            evaluate,
        )
        for paradigm in (list(PARADIGMS)[:1] if quick else PARADIGMS)
        for kind in EVALUATIONS
        for name in NAMES
    ]


def pipeline(method: str) -> dict[str, Any]:
    """Read the pipeline of this name from the YAML files in ``pipelines``, as MOABB reads them."""
    from moabb.pipelines.utils import parse_pipelines_from_directory

    (found,) = [entry for entry in parse_pipelines_from_directory(str(PIPELINES)) if entry["name"] == method]
    return {method: found["pipeline"]}


def evaluate(*, repetition: int, method: str, kind: str, paradigm: str, size: dict[str, int]) -> Record:
    """Run one pipeline in one evaluation, and return its scores by subject and session."""
    import moabb.evaluations
    import moabb.paradigms
    from moabb.datasets.fake import FakeDataset

    events = list(PARADIGMS[paradigm])
    dataset = FakeDataset(events, seed=repetition, **size)
    extra = {} if paradigm == "LeftRightImagery" else {"n_classes": len(events), "events": events}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of MOABB's dependencies
        scores = getattr(moabb.evaluations, f"{kind}Evaluation")(
            paradigm=getattr(moabb.paradigms, paradigm)(**extra), datasets=[dataset], hdf5_path=folder, overwrite=True
        ).process(pipeline(method))
    return {"scores": scores["score"].astype(float).round(4).tolist(), "accuracy": float(scores["score"].mean())}
