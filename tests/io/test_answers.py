"""Model files hold what the model answered when it was saved, so that a change of any array is found."""

from __future__ import annotations

import copy
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import AdaptiveStep, Checkpoint, RiemannianLVQ, TangentSpace, load_model, save_model
from rplvq.exceptions import ModelFileError
from rplvq.io import load_checkpoint
from rplvq.io._archive import CHECKPOINT, open_archive, seal_archive
from rplvq.protocols import Array
from tests.io.test_pipelines import FROM_DATA, MODELS, X, Y, answers, fitted, forge, lvq

METRICS: list[Any] = ["log_euclidean", "tangent", "learned_log_euclidean", TangentSpace(whiten=True), "euclidean"]
PHASES = np.exp(1j * np.arange(4))
Z = X * PHASES[:, None] * PHASES.conj()
OTHERS: dict[str, Callable[[], Any]] = {
    **{str(metric): (lambda metric=metric: lvq(metric).fit(X, Y)) for metric in METRICS},
    "bures_wasserstein": lambda: lvq("bures_wasserstein").fit(X, Y),
    "complex": lambda: lvq().fit(Z, Y),
    "vectors": lambda: lvq("euclidean_vectors").fit(X[:, 0], Y),
    "adaptive": lambda: lvq(step_size=AdaptiveStep()).fit(X, Y),
    "stream": lambda: lvq().partial_fit(X[:12], Y[:12]).partial_fit(X[12:], Y[12:]),
    "rank": lambda: FROM_DATA["rank"][0]().fit(FROM_DATA["rank"][1]),
}


def altered(array: Array) -> Iterator[Array]:
    """Yield valid and invalid arrays in place of one: scaled, with another entry, reversed, and near it."""
    if array.dtype.kind not in "fciu":
        yield array[::-1]
        return
    rng = np.random.default_rng(0)
    yield 2 * array
    changed = array.copy()
    changed[(0,) * array.ndim] = changed[(0,) * array.ndim] * 1.5 + 1
    yield changed
    yield array[::-1]
    if array.ndim > 1 and array.shape[-1] == array.shape[-2]:  # another definite matrix, if it is one
        scale = np.exp(0.001 * rng.normal(size=array.shape[-1]))
        yield array * scale[:, None] * scale
    elif array.dtype.kind == "f":
        yield array * (1 + 0.001 * rng.random(array.shape))


def behaviour(model: Any, name: str) -> list[Array]:
    """What a model says of samples, also of incomplete ones, and after it has learned from some."""
    if name in ("rank", "complex", "vectors"):
        return [model.transform({"rank": FROM_DATA["rank"][1], "complex": Z, "vectors": X[:, 0]}[name])]
    session = 1 if name in ("recenter", "pipeline") else None
    result = answers(model, session=session)
    if session is None and hasattr(model, "score_samples"):
        result.append(model.score_samples(X[::2]))
    incomplete = X[::2].copy()
    incomplete[:, -1] = incomplete[:, :, -1] = np.nan
    if isinstance(model, RiemannianLVQ):
        result.append(model.transform(incomplete))
    if hasattr(model, "partial_fit") and (session is None or name == "stream"):
        with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings(action="ignore"):
            try:
                after = copy.deepcopy(model).partial_fit(X[::2], Y[::2])
            except ValueError:  # a Recenter that is not online
                return result
        result += answers(after)
    return result


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
def test_no_altered_array_answers_otherwise_in_silence(name: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m"
    save_model(fitted(name) if name in MODELS else OTHERS[name](), path)
    header, arrays = open_archive(path)
    header.pop("arrays")
    before = behaviour(load_model(path), name)
    refused = 0
    for key, array in arrays.items():
        for other in altered(array) if array.size else ():
            if np.array_equal(other, array):
                continue
            path.write_bytes(seal_archive(header, arrays | {key: np.ascontiguousarray(other)}))
            try:
                with np.errstate(all="ignore"):
                    model = load_model(path)
            except ModelFileError:
                refused += 1
                continue
            for here, there in zip(before, behaviour(model, name), strict=True):
                if here.dtype.kind == "f":  # a learned metric is the same after a rotation, to rounding
                    assert_allclose(there, here, 1e-9, 1e-9, err_msg=f"{key} was altered")
                else:
                    assert_array_equal(there, here, f"{key} was altered")
    assert refused >= len(arrays)


def test_the_error_says_which_step_differs_and_by_how_much(tmp_path: pathlib.Path) -> None:
    save_model(fitted("pipeline"), tmp_path / "m")
    with np.errstate(all="ignore"):
        forge(tmp_path / "m", lambda _, arrays: arrays["steps.0.1.means_"].__imul__(4.0))
        with pytest.raises(ModelFileError, match=r"m: the answers of its Recenter differ by 3 from .* was changed"):
            load_model(tmp_path / "m")
        forge(tmp_path / "m", lambda _, arrays: arrays["steps.0.1.means_"].__imul__(0.25 * (1 + 1e-9)))
    load_model(tmp_path / "m")  # as much as another machine may round


def test_another_version_may_answer_otherwise_with_a_warning(tmp_path: pathlib.Path) -> None:
    save_model(fitted("recenter"), tmp_path / "m")
    forge(tmp_path / "m", lambda header, arrays: header["versions"].update(rplvq="0.0.1"))
    load_model(tmp_path / "m")
    forge(tmp_path / "m", lambda _, arrays: arrays["means_"].__imul__(4.0))
    with pytest.warns(UserWarning, match=r"written by rplvq 0\.0\.1, .*: the model may predict otherwise here"):
        load_model(tmp_path / "m")


def test_files_of_older_versions_have_no_answers(tmp_path: pathlib.Path) -> None:
    model = fitted("option")
    save_model(model, tmp_path / "m")
    forge(tmp_path / "m", lambda header, _: header.pop("answers"))
    assert_array_equal(load_model(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize("metric", ["bures_wasserstein", "affine_invariant", "log_euclidean", "euclidean", "tangent"])
@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_models_of_any_unit_and_of_nearly_singular_matrices_come_back(
    metric: str, unit: float, tmp_path: pathlib.Path
) -> None:
    scale = np.geomspace(1, 1e-5, 4)
    data = unit * X * scale[:, None] * scale
    model = lvq(metric, sigma2="half_median").fit(data, Y)
    save_model(model, tmp_path / "m")
    assert_array_equal(load_model(tmp_path / "m").predict_proba(data), model.predict_proba(data))


def test_a_checkpoint_of_which_any_bit_was_changed_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "fit"
    lvq(step_size=AdaptiveStep(), max_epochs=3, callbacks=[Checkpoint(path)]).fit(X, Y)
    header, arrays = open_archive(path, CHECKPOINT)
    header.pop("arrays")
    load_checkpoint(path)
    count = 0
    for key, array in arrays.items():
        other = array.copy()
        other[(0,) * array.ndim] = np.nextafter(array.flat[0], np.inf) if array.dtype.kind == "f" else array.flat[0] + 1
        path.write_bytes(seal_archive(header, arrays | {key: other}, CHECKPOINT))
        with pytest.raises(ModelFileError, match="its progress was changed after it was written"):
            load_checkpoint(path)
        count += 1
    assert count == len(arrays) >= 10
    header.pop("digest")  # as in files of older versions
    path.write_bytes(seal_archive(header, arrays, CHECKPOINT))
    load_checkpoint(path)
