"""The model card: what a model or its file holds, in Markdown for people and as plain values for programs."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rplvq.io import ModelFile, read_model
from rplvq.parts import library_version

Fitted: TypeAlias = Mapping[str, Any]  # attributes of a fitted estimator by name
USE = """\
Probabilities, limits and the choice hold for samples like those of the training. Where sensors, subjects or sessions \
change, compare the share of rejected samples with the promised one, and test the model on labelled samples again."""


def model_card(model: BaseEstimator | str | os.PathLike[str], manifold: object = None, *, markdown: bool = True) -> Any:
    """Describe a model in Markdown, for a repository or a report.

    Parameters
    ----------
    model : fitted estimator, or path-like
        An estimator or a pipeline of this library, or a file of :func:`rplvq.save_model`, which alone tells the
        versions that wrote it, and the date and the data that ``save_model`` was given.
    manifold : optional
        As for :func:`rplvq.load_model`.
    markdown : bool, default=True
        Whether to return one text, or else the facts as a dictionary of plain values by section.

    Returns
    -------
    str or dict
        The file, the data, the steps, the classes, metric and parameters, what was chosen and by which held-out losses,
        the calibration of probabilities, the limits beyond which samples are novel, and what held-out samples promised.
        NotFittedError is raised if the model is not fitted, and the errors of :func:`rplvq.load_model`.

    Examples
    --------
    >>> from rplvq import Recenter, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.inspection import model_card
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> pipeline = make_pipeline(Recenter(), RiemannianLVQ("log_euclidean", random_state=0)).fit(X, y)
    >>> print(model_card(pipeline)[:106])
    # Model card: Pipeline
    <BLANKLINE>
    ## Steps
    <BLANKLINE>
    - `Recenter()`
    - `RiemannianLVQ(metric='log_euclidean', random_state=0)`
    """
    facts = _facts(model, manifold)
    if not markdown:
        return facts
    blocks = [f"# Model card: {facts.pop('name')}"]
    for title, content in facts.items():
        blocks += [f"## {title.capitalize()}", _markdown(content)]
    return "\n\n".join([*blocks, "## Use", USE]) + "\n"


def _facts(model: BaseEstimator | str | os.PathLike[str], manifold: object) -> dict[str, object]:
    """Return what a card shows, as plain values by section."""
    is_path = isinstance(model, (str, os.PathLike))
    content = read_model(model, manifold) if is_path else ModelFile(model, {}, {})
    check_is_fitted(content.estimator)
    facts: dict[str, object] = {"name": type(content.estimator).__name__}
    if is_path:
        written = datetime.fromtimestamp(os.stat(model).st_mtime, UTC).isoformat(timespec="seconds")
        by = ", ".join(f"{name} {version}" for name, version in content.versions.items())
        facts["file"] = {"name": os.path.basename(model), "of": written, "written by": by, "read by": library_version()}
        facts["data"] = content.record or {"recorded": "nothing: save_model(..., data=(X, y)) records them"}
    steps = list(_steps(content.estimator))
    facts["steps"] = [" ".join(repr(step).split()) for step in steps]
    for step in steps:
        for title, describe in SECTIONS.items():
            if title not in facts and (section := describe(vars(step), step)):
                facts[title] = section
    return facts


def _steps(model: BaseEstimator) -> Iterator[object]:
    """Yield a fitted estimator and the fitted ones in it, from the first step to the last."""
    inner = [step for _, step in getattr(model, "steps", ())]
    if not inner and hasattr(model, "get_params"):  # and not "passthrough"
        yield model
    for step in [*inner, getattr(model, "estimator_", None)]:
        yield from _steps(step) if step is not None else ()


def _classifier(fitted: Fitted, model: BaseEstimator) -> dict[str, object]:
    if "prototype_labels_" not in fitted or "trainer_" not in fitted:
        return {}
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "callbacks"}
    return {
        "classes": fitted["classes_"].tolist(),
        "prototypes": list(fitted["prototypes_"].shape),
        "prototype_labels": fitted["prototype_labels_"].tolist(),
        "sigma2": float(fitted["sigma2_"]),
        "epochs": int(fitted["n_epochs_"]),
        "last_epoch": {name: values[-1:].tolist()[0] for name, values in fitted["history_"].items()},
        "parameters": {
            name: value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
            for name, value in parameters.items()
        },
    }


def _choice(fitted: Fitted, _: object) -> dict[str, object]:
    if (choice := fitted.get("choice_")) is None:
        return {}
    facts = {name: getattr(choice, name) for name in ("chosen", "trains", "calibration")}
    return facts | {"compared": [one._asdict() for one in choice.tried]}


def _rejection(fitted: Fitted, option: BaseEstimator) -> dict[str, object]:
    if "reject_label_" not in fitted:
        return {}
    facts = {name: fitted[f"{name}_"] for name in ("criterion", "threshold", "reject_label")}
    facts["promised share of samples with a label"] = option.coverage
    if (limits := fitted["limits_"]) is not None:
        pairs = zip(limits.classes.tolist(), limits.sqdist.tolist(), strict=True)
        facts["novel beyond"] = [{"class": label, "squared distance": limit} for label, limit in pairs]
    return facts


def _transfer(fitted: Fitted, _: object) -> dict[str, object]:
    names = {"weight of the sources": "weight_", "sources": "source_weights_"}
    return {title: fitted[name] for title, name in names.items() if "source_weights_" in fitted}


SECTIONS = {"classifier": _classifier, "choice": _choice, "rejection": _rejection, "transfer": _transfer}
"""What describes a step, given its attributes, by the title of the section; nothing where it does not apply."""


def _markdown(content: Any) -> str:
    """Return a list for texts and for a mapping; the tables in a mapping follow its list."""
    if isinstance(content, list):
        return "\n".join(f"- `{item}`" for item in content)
    lists = {name: rows for name, rows in content.items() if isinstance(rows, list) and rows}
    tables = {name: rows for name, rows in lists.items() if isinstance(rows[0], dict)}
    lines = "\n".join(f"- {_value(name)}: {_value(value)}" for name, value in content.items() if name not in tables)
    return "\n\n".join([lines, *(f"{_value(name)}:\n\n{_table(rows)}" for name, rows in tables.items())])


def _table(rows: list[dict[str, object]]) -> str:
    lines = [list(map(_value, rows[0])), ["---"] * len(rows[0]), *(list(map(_value, row.values())) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _value(value: object) -> str:
    """Return a value as one line in which Markdown marks nothing up."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return "".join(f"\\{char}" if char in "\\`*_|<>[]#" else char for char in text)
