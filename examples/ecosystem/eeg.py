"""MOABB's evaluations of the pipelines in the folder ``pipelines``, on MOABB's simulated dataset or on real EEG.

The simulated dataset is noise by design. Its scores lie around chance and only show that every pipeline runs in each
kind of evaluation. For real EEG, on a machine with a network,

    python -m examples.ecosystem.eeg [folder]

downloads BNCI2014_001 (about 0.5 GB), runs the pipelines within sessions with four classes, and prints their accuracies
beside the published ones. The folder keeps the scores, so that an interrupted run can be continued. This module needs
the extra ``eeg``.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from examples.paper.report import table
from examples.paper.runner import Job, Record

PIPELINES = Path(__file__).parent / "pipelines"
FOUR_CLASSES = Path(__file__).parent / "four_classes.yml"
EVALUATIONS = ("WithinSession", "CrossSession", "CrossSubject")
PARADIGMS = {"LeftRightImagery": ("left_hand", "right_hand"), "MotorImagery": ("left_hand", "right_hand", "feet")}
NAMES = (
    "MDM",
    "RiemannianLVQ, affine-invariant",
    "RiemannianLVQ, Log-Euclidean",
    "RiemannianLVQ, augmented covariances",
    "RiemannianLVQ, filter bank",
)
PUBLISHED = {"MDM": 61.60, "FgMDM": 70.14, "TS+LR": 71.97, "ACM+TS+SVM": 77.82}
"""Accuracies in percent, within sessions of BNCI2014_001, four classes (Chevallier et al. 2024, arXiv:2404.15319)."""


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


def beside_published(folder: Path, dataset: Any = "BNCI2014-001", pipelines: Path = PIPELINES) -> str:
    """Run MOABB's benchmark of the pipelines within sessions with four classes.

    Parameters
    ----------
    folder : path
        Where MOABB keeps scores. Those that are there are not computed again.
    dataset : str or FakeDataset
        Code of a dataset of MOABB, which is downloaded, or a simulated one.
    pipelines : path
        A folder of YAML files, or one file.

    Returns
    -------
    str
        Table of the mean accuracies in percent over all subjects and sessions, and of the published ones.
    """
    from moabb import benchmark

    scores = benchmark(
        pipelines=str(pipelines),
        evaluations=["WithinSession"],
        paradigms=["MotorImagery"],
        include_datasets=[dataset],
        contexts=str(FOUR_CLASSES),
        results=str(folder / "scores"),
        output=str(folder / "analysis"),
        n_jobs=1,
    )
    found = 100 * scores.groupby("pipeline")["score"].mean()
    rows = [[name, f"{value:.2f}", "here"] for name, value in found.items()]
    rows += [[name, f"{value:.2f}", "published"] for name, value in PUBLISHED.items()]
    return table(["pipeline", "accuracy in percent", "source"], sorted(rows, key=lambda row: -float(row[1])))


if __name__ == "__main__":
    print(beside_published(Path(*sys.argv[1:2] or ["build/moabb"])))
