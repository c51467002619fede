"""The commands for one model: train it, predict with it, describe its file."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rplvq.cli._data import load_data, load_samples
from rplvq.estimators import RiemannianLVQ
from rplvq.io import load_model


def write_json(value: Any) -> None:
    """Print a value of plain types and arrays as one JSON document; numbers that are not finite become null."""
    sys.stdout.write(json.dumps(_plain(value), indent=1, allow_nan=False) + "\n")


def fit(arguments: argparse.Namespace) -> None:
    """Train a model and write it to its file."""
    X, y = load_data(arguments.data, arguments.seed)
    if not Path(arguments.model).resolve().parent.is_dir():
        raise ValueError(f"--model {arguments.model!r}: its folder does not exist")
    model = RiemannianLVQ(
        arguments.metric,
        arguments.cost,
        sigma2=arguments.sigma2,
        prototypes_per_class=arguments.prototypes,
        init="mean" if arguments.prototypes == 1 else "kmeans",
        max_epochs=arguments.epochs,
        verbose=not arguments.quiet,
        random_state=arguments.seed,
    )
    model.fit(X, y)
    model.save(arguments.model)
    model.set_params(verbose=0)
    accuracy = _accuracy(model, model.predict(X), y)
    _say(arguments.json, {"model": arguments.model, "training_accuracy": accuracy} | describe(model))


def predict(arguments: argparse.Namespace) -> None:
    """Predict labels as CSV or JSON, and print the accuracy to standard error if the true labels are known."""
    model = load_model(arguments.model)
    X, y = load_samples(arguments.data)
    model.set_params(n_jobs=arguments.jobs)
    found: dict[str, Any] = {"labels": model.predict(X)}
    if arguments.proba:
        found |= {"classes": model.classes_, "probabilities": model.predict_proba(X)}
    if y is not None:
        found["accuracy"] = _accuracy(model, found["labels"], y)
        sys.stderr.write(f"rplvq: accuracy {found['accuracy']:.4f} of {len(X)} samples\n")
    text = json.dumps(_plain(found), indent=1) + "\n" if arguments.json else _csv(found)
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        Path(arguments.out).write_text(text, encoding="utf-8")


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


def _accuracy(model: RiemannianLVQ, predicted: Any, y: Any) -> float:
    """Return the accuracy of predicted labels (N,); of soft labels y (N, C) the most probable class counts."""
    if y.ndim == 2 and y.shape[1] not in (1, len(model.classes_)):
        raise ValueError(f"y has {y.shape[1]} columns, the model {len(model.classes_)} classes: one column for each")
    missing = np.argwhere(np.isnan(y)) if y.dtype.kind == "f" else np.empty((0, 1))
    if len(missing):
        raise ValueError(f"y{missing[0].tolist()} is NaN: drop y from the file to predict without an accuracy")
    labels = model.classes_[y.argmax(axis=1)] if y.ndim == 2 and y.shape[1] > 1 else np.ravel(y)
    return float(np.mean(predicted == labels))


def _say(as_json: bool, found: dict[str, Any]) -> None:
    if as_json:
        write_json(found)
        return
    for name, value in found.items():
        if isinstance(value, dict):
            sys.stdout.write(f"{name}:\n" + "".join(f"  {key}: {entry}\n" for key, entry in value.items()))
        else:
            sys.stdout.write(f"{name}: {_plain(value)}\n")


def _csv(found: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    classes = found.get("classes", np.empty(0))
    writer.writerow(["label", *(f"p({label})" for label in classes.tolist())])
    probabilities = found.get("probabilities", np.empty((len(found["labels"]), 0)))
    for label, row in zip(found["labels"].tolist(), probabilities.tolist(), strict=True):
        writer.writerow([label, *(f"{value:.9g}" for value in row)])
    return text.getvalue()


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _plain(value: Any) -> Any:
    """Turn arrays into lists and numbers of Python, and numbers that are not finite into None."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value
