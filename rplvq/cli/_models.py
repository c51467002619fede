"""The commands for one model: train it, predict with it, describe its file."""

import argparse
import csv
import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from rplvq.arrays import accuracy
from rplvq.cli._data import load_data, load_groups, load_samples
from rplvq.cli._options import UsageError
from rplvq.cli._streams import say
from rplvq.datasets import PolsarScene, classify_scene
from rplvq.estimators import RiemannianLVQ
from rplvq.exceptions import TrainingInterruptedWarning, interrupts_deferred
from rplvq.inspection import RejectOption
from rplvq.io import Checkpoint, load_model, replace_file, require_writable


def write_json(value: Any) -> None:
    """Print a value of plain types and arrays as one JSON document; numbers that are not finite become null."""
    say(json.dumps(_plain(value), indent=1, allow_nan=False) + "\n")


def fit(arguments: argparse.Namespace) -> None:
    """Train a model and write it to its file.

    Ctrl-C raises TrainingInterruptedWarning and writes no model. A checkpoint keeps what was learned until then.
    """
    checkpoints = [] if arguments.checkpoint is None else [arguments.checkpoint]
    for path in (arguments.model, *checkpoints):
        require_writable(path)
    if os.path.realpath(arguments.model) in map(os.path.realpath, checkpoints):
        raise UsageError(f"--checkpoint and --model are the same file, {arguments.model!r}")
    if checkpoints and arguments.coverage is not None:
        raise UsageError("--coverage fits several models, which have no common --checkpoint: give one of the two")
    X, y = load_data(arguments.data, arguments.seed)
    groups = None if arguments.groups is None else load_groups(arguments.groups, arguments.data, len(X))
    model = RiemannianLVQ(
        arguments.metric,
        arguments.cost,
        sigma2=arguments.sigma2,
        prototypes_per_class=arguments.prototypes,
        init="mean" if arguments.prototypes == 1 else "kmeans",
        max_epochs=arguments.epochs,
        callbacks=[Checkpoint(path) for path in checkpoints],
        verbose=not arguments.quiet,
        random_state=arguments.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterruptedWarning)
        if arguments.coverage is None:
            saved = model.fit(X, y, groups=groups, resume=next(filter(os.path.exists, checkpoints), None))
        else:
            given = {} if groups is None else {"groups": groups}
            saved = RejectOption(model, coverage=arguments.coverage).fit(X, y, **given)
            model = saved.estimator_
    found = {"model": arguments.model, "training_accuracy": model.score(X, y)}
    with interrupts_deferred(raised=False):
        saved.save(arguments.model)
        for path in checkpoints:
            Path(path).unlink(missing_ok=True)
        _say(arguments.json, found | describe(model.set_params(verbose=0)))


def predict(arguments: argparse.Namespace) -> None:
    """Predict labels as CSV or JSON, and print the accuracy to standard error if the true labels are known."""
    if arguments.out is not None:
        require_writable(arguments.out)
    option = RejectOption.load(arguments.model) if arguments.reject else None
    model = load_model(arguments.model) if option is None else option.estimator_
    model.set_params(n_jobs=arguments.jobs)
    if any(Path(arguments.data).glob("[CTs][1-4][1-4]*.[bt]i[nf]")):
        _predict_scene(option or model, arguments)
        return
    if arguments.novelty or arguments.window != 1 or arguments.looks != [1, 1]:
        raise UsageError(f"--novelty, --window and --looks are for radar scenes, but --data {arguments.data!r} is none")
    X, y = load_samples(arguments.data)
    found: dict[str, Any] = {"labels": (option or model).predict(X)}
    if option is not None:
        found["reasons"] = option.reasons(X)
    if arguments.proba:
        found |= {"classes": model.classes_, "probabilities": model.predict_proba(X)}
    if y is not None:
        found["accuracy"] = accuracy(found["labels"], y, model.classes_)
        say(f"rplvq: accuracy {found['accuracy']:.4f} of {found['labels'].size} samples\n", is_error=True)
    text = json.dumps(_plain(found), indent=1) + "\n" if arguments.json else _csv(found)
    if arguments.out is None:
        say(text)
        return
    with interrupts_deferred(raised=False):
        replace_file(arguments.out, text.encode())


def _predict_scene(model: Any, arguments: argparse.Namespace) -> None:
    """Write maps of a radar scene, and print the names of the files."""
    if arguments.out is None:
        raise UsageError(f"--data {arguments.data!r} is a radar scene: --out must name a map, such as map.tif")
    scene = PolsarScene(arguments.data, looks=arguments.looks, window=arguments.window)
    written = classify_scene(model, scene, arguments.out, proba=arguments.proba, novelty=arguments.novelty)
    _say(arguments.json, {"written": [str(path) for path in written], "shape": scene.shape, "classes": model.classes_})


def info(arguments: argparse.Namespace) -> None:
    """Print a description of a model file."""
    _say(arguments.json, describe(load_model(arguments.model)))


def describe(model: RiemannianLVQ) -> dict[str, Any]:
    """Return the parameters, classes and sizes of a fitted model, and the last epoch of its training."""
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "callbacks"}
    return {
        "parameters": {name: value if _is_plain(value) else repr(value) for name, value in parameters.items()},
        "classes": model.classes_,
        "prototypes": model.prototypes_.shape,
        "prototype_labels": model.prototype_labels_,
        "sigma2": model.sigma2_,
        "epochs": model.n_epochs_,
        "last_epoch": {name: values[-1] for name, values in model.history_.items()},
    }


def _say(as_json: bool, found: dict[str, Any]) -> None:
    if as_json:
        write_json(found)
        return
    for name, value in found.items():
        if isinstance(value, dict):
            say(f"{name}:\n" + "".join(f"  {key}: {entry}\n" for key, entry in value.items()))
        else:
            say(f"{name}: {_plain(value)}\n")


def _csv(found: dict[str, Any]) -> str:
    """Return one line per sample; for an image of matrices, each line begins with the row and column of its pixel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels, classes = found["labels"], found.get("classes", np.empty(0))
    is_image = labels.ndim > 1
    axes = ["row", "column"] if labels.ndim == 2 else [f"axis{i}" for i in range(labels.ndim) if is_image]
    writer.writerow(
        [*axes, "label", *(f"p({label})" for label in _plain(classes)), *(["reason"] * ("reasons" in found))]
    )
    probabilities = found.get("probabilities", np.empty(0)).reshape(labels.size, len(classes))
    reasons = found.get("reasons", np.empty((labels.size, 0))).reshape(labels.size, -1)
    rows = zip(np.ndindex(labels.shape), _plain(labels.ravel()), probabilities.tolist(), reasons.tolist(), strict=True)
    for place, label, shares, reason in rows:
        writer.writerow([*(place if is_image else ()), label, *(f"{value:.9g}" for value in shares), *reason])
    return text.getvalue()


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _plain(value: Any) -> Any:
    """Turn arrays into lists, numbers that are not finite into None, and bytes, dates and the like into text."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if _is_plain(value) else str(value)
