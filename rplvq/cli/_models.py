"""The commands for one model: train it, predict with it, let it follow a stream, describe its file."""

import argparse
import csv
import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator

from rplvq.arrays import accuracy
from rplvq.capabilities import Rejecting, provides
from rplvq.cli._data import Loaded, Names, load_data, load_groups
from rplvq.cli._options import STEPS, UsageError, say
from rplvq.datasets import PolsarScene, classify_scene
from rplvq.estimators import RiemannianLVQ
from rplvq.exceptions import PointError, TrainingInterruptedWarning, interrupts_deferred
from rplvq.inspection import RejectOption, model_card
from rplvq.io import Checkpoint, load_model, replace_file, require_writable, save_model
from rplvq.preprocessing import StreamingPipeline
from rplvq.protocols import Array

NO_OPTION = "the model holds no reject option, which --reject needs: train it with --coverage"


def write_json(value: object) -> None:
    """Print a value of plain types and arrays as one JSON document; numbers that are not finite become null."""
    say(json.dumps(_plain(value), indent=1, allow_nan=False) + "\n")


def train(arguments: argparse.Namespace) -> None:
    """Train a model or a pipeline and write it to its file; Ctrl-C raises TrainingInterruptedWarning instead."""
    checkpoints = [] if arguments.checkpoint is None else [arguments.checkpoint]
    _require_outputs(arguments, "model", "checkpoint")  # before hours of training
    for option in ("coverage", "steps"):
        if checkpoints and getattr(arguments, option):
            raise UsageError(f"--{option} fits several models, which have no common --checkpoint: give one of the two")
    model = _untrained(arguments, checkpoints)
    loaded, metadata = read_data(arguments, labelled=True)
    with warnings.catch_warnings(), sklearn.config_context(enable_metadata_routing=_routes(model)):
        warnings.simplefilter("error", TrainingInterruptedWarning)
        resumed = {"resume": checkpoints[0]} if any(map(os.path.exists, checkpoints)) else {}
        model.fit(loaded.X, loaded.y, **metadata, **resumed)
    labels = _answers(model, loaded.X, metadata)["labels"]
    facts = model_card(model, markdown=False)
    made = {"model": arguments.model, "training_accuracy": accuracy(labels, loaded.y, model.classes_)}
    with interrupts_deferred(raised=False):
        save_model(model, arguments.model, data=(loaded.X, loaded.y))
        for path in checkpoints:
            Path(path).unlink(missing_ok=True)
        _say(arguments.json, made | {"steps": facts["steps"]} | facts["classifier"])


def _require_outputs(arguments: argparse.Namespace, *options: str) -> None:
    """Raise OSError if a file of these options cannot be written; UsageError if it is an input or another output.

    ``--save`` may name the file of ``--model``, which then holds the model that followed the stream.
    """
    named = [("data", path) for path in arguments.data if os.path.isfile(path)]
    if arguments.groups is not None and os.path.isfile(arguments.groups):  # it may also be the name of an array
        named.append(("groups", arguments.groups))
    for option in options:
        path = getattr(arguments, option)
        if path is None:
            continue
        require_writable(path)
        others = [*named, ("model", arguments.model)] if option == "out" else named
        for other, taken in others:
            if os.path.realpath(taken) == os.path.realpath(path):
                raise UsageError(f"--{option} and --{other} are the same file, {taken!r}, which would be replaced")
        named.append((option, path))


def _untrained(arguments: argparse.Namespace, checkpoints: list[str]) -> BaseEstimator:
    model: BaseEstimator = RiemannianLVQ(
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
    if arguments.steps:
        model = StreamingPipeline([*((name, STEPS[name]()) for name in arguments.steps), ("lvq", model)])
    model.set_params(**dict(arguments.set))
    return model if arguments.coverage is None else RejectOption(model, coverage=arguments.coverage)


def read_data(arguments: argparse.Namespace, *, labelled: bool = False) -> tuple[Loaded, dict[str, Array]]:
    """Return what --data holds, and the metadata of the samples: their groups, or nothing."""
    names = Names(arguments.x_name, arguments.y_name)
    loaded = load_data(arguments.data, arguments.seed, names, labelled=labelled)
    if arguments.groups is None:
        return loaded, {}
    return loaded, {"groups": load_groups(arguments.groups, loaded)}


def _routes(model: BaseEstimator) -> bool:
    """Whether a model passes metadata on to models in it, for which scikit-learn's routing must be enabled."""
    return hasattr(model, "steps") or (hasattr(model, "estimator") and _routes(model.estimator))


def predict(arguments: argparse.Namespace) -> None:
    """Predict labels as CSV or JSON, and print the accuracy to standard error if the true labels are known."""
    _require_outputs(arguments, "out")
    model = load_model(arguments.model)
    model.set_params(**{name: arguments.jobs for name in model.get_params() if name.rpartition("__")[2] == "n_jobs"})
    if len(arguments.data) == 1 and PolsarScene.is_in(arguments.data[0]):
        _predict_scene(model, arguments)
        return
    if arguments.novelty or arguments.window != 1 or arguments.looks != [1, 1]:
        raise UsageError("--novelty, --window and --looks are for the folder of a radar scene, which --data is not")
    loaded, metadata = read_data(arguments)
    answers = _answers(model, loaded.X, metadata, reject=arguments.reject, proba=arguments.proba)
    _write_answers(arguments, answers, loaded.y, model.classes_)


def _answers(
    model: BaseEstimator, X: Array, metadata: dict[str, Array], *, reject: bool = False, proba: bool = False
) -> dict[str, Array]:
    """Return labels, probabilities and reasons of rejection, of the classifier itself or of the option around it."""
    with sklearn.config_context(enable_metadata_routing=bool(metadata)):
        if hasattr(model, "steps") and provides(model[-1], Rejecting):
            X = model[:-1].transform(X, **metadata)
            model = model[-1]
            metadata = {}
        metadata = metadata if _routes(model) else {}
        classifier = model.estimator_ if provides(model, Rejecting) else model
        if reject and classifier is model:
            raise ValueError(NO_OPTION)
        answers: dict[str, Array] = {"labels": (model if reject else classifier).predict(X, **metadata)}
        if reject:
            answers["reasons"] = model.reasons(X, **metadata)
        if proba:
            answers |= {"classes": classifier.classes_, "probabilities": classifier.predict_proba(X, **metadata)}
    return answers


def _write_answers(arguments: argparse.Namespace, answers: dict[str, Any], y: Array | None, classes: Array) -> None:
    if y is not None:
        answers["accuracy"] = accuracy(answers["labels"], y, classes)
        say(f"rplvq: accuracy {answers['accuracy']:.4f} of {answers['labels'].size} samples\n", is_error=True)
    text = json.dumps(_plain(answers), indent=1) + "\n" if arguments.json else _csv(answers)
    if arguments.out is None:
        say(text)
        return
    with interrupts_deferred(raised=False):
        replace_file(arguments.out, text.encode())


def _predict_scene(model: BaseEstimator, arguments: argparse.Namespace) -> None:
    """Write maps of a radar scene, and print the names of the files."""
    if arguments.out is None:
        raise UsageError(f"--data {arguments.data[0]!r} is a radar scene: --out must name a map, such as map.tif")
    option = model[-1] if hasattr(model, "steps") else model
    if not provides(option, Rejecting):
        if arguments.reject:
            raise ValueError(NO_OPTION)
    elif not arguments.reject and option is model:  # without novelty, the classifier itself is faster
        model = option.without_rejection() if arguments.novelty else option.estimator_
    elif not arguments.reject:
        model.set_params(**{model.steps[-1][0]: option.without_rejection()})
    scene = PolsarScene(arguments.data[0], looks=arguments.looks, window=arguments.window)
    written = classify_scene(model, scene, arguments.out, proba=arguments.proba, novelty=arguments.novelty)
    _say(arguments.json, {"written": [str(path) for path in written], "shape": scene.shape, "classes": model.classes_})


def stream(arguments: argparse.Namespace) -> None:
    """Predict batch after batch, and learn from each one afterwards; write the labels, and the model that followed."""
    _require_outputs(arguments, "out", "save")
    model = load_model(arguments.model)
    loaded, metadata = read_data(arguments)
    learner = _learner(model, loaded.y is not None)
    parts: list[dict[str, Array]] = []
    for start in range(0, len(loaded.X), arguments.batch):
        rows = slice(start, start + arguments.batch)
        now = {name: values[rows] for name, values in metadata.items()}
        labels = () if loaded.y is None else (loaded.y[rows],)
        try:
            parts.append(_answers(model, loaded.X[rows], now, reject=arguments.reject))
            with sklearn.config_context(enable_metadata_routing=_routes(learner)):
                learner.partial_fit(loaded.X[rows], *labels, **(now if _routes(learner) else {}))
        except PointError as error:
            raise error.shifted(start) from None
    answers = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    with interrupts_deferred(raised=False):
        if arguments.save is not None:
            save_model(model, arguments.save)
        _write_answers(arguments, answers, loaded.y, model.classes_)


def _learner(model: BaseEstimator, labelled: bool) -> BaseEstimator:
    """Return what learns from the samples of a stream: the model, or without labels its transformers alone."""
    pipeline = getattr(model, "estimator_", model)
    learner = model if labelled or not hasattr(pipeline, "steps") else pipeline[:-1]
    if not hasattr(learner, "partial_fit") or (learner is model and not labelled):
        what = "" if labelled else " without labels"
        remedy = "train it with --steps recenter --set recenter__online=true, or label the samples"
        raise ValueError(f"the model {type(model).__name__} cannot learn from a stream{what}: {remedy}")
    return learner


def info(arguments: argparse.Namespace) -> None:
    """Print the card of a model file as Markdown, or what it says as JSON."""
    if arguments.json:
        write_json(model_card(arguments.model, markdown=False))
    else:
        say(model_card(arguments.model))


def _say(as_json: bool, facts: dict[str, object]) -> None:
    if as_json:
        write_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            say(f"{name}:\n" + "".join(f"  {key}: {entry}\n" for key, entry in value.items()))
        else:
            say(f"{name}: {_plain(value)}\n")


def _csv(answers: dict[str, Array]) -> str:
    """Return one line per sample; for an image of matrices, each line begins with the row and column of its pixel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    labels = answers["labels"]
    classes = answers.get("classes", np.empty(0))
    is_image = labels.ndim > 1
    axes = ["row", "column"] if labels.ndim == 2 else [f"axis{i}" for i in range(labels.ndim) if is_image]
    columns = [f"p({label})" for label in _plain(classes)] + ["reason"] * ("reasons" in answers)
    writer.writerow([*axes, "label", *columns])
    probabilities = answers.get("probabilities", np.empty(0)).reshape(labels.size, len(classes))
    reasons = answers.get("reasons", np.empty((labels.size, 0))).reshape(labels.size, -1)
    rows = zip(np.ndindex(labels.shape), _plain(labels.ravel()), probabilities.tolist(), reasons.tolist(), strict=True)
    for place, label, shares, reason in rows:
        writer.writerow([*(place if is_image else ()), label, *(f"{value:.9g}" for value in shares), *reason])
    return text.getvalue()


def _plain(value: object) -> Any:
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
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
