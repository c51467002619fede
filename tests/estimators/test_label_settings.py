"""Labels and groups keep their values, and settings by label hold in folds that lack a class."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score

from rplvq import Recenter, RiemannianLVQ
from rplvq.arrays import check_groups, one_type
from rplvq.datasets import make_syn1

X, y = make_syn1(n_per_class=15, random_state=0)


class Cue(str, enum.Enum):  # noqa: UP042  (a StrEnum becomes another string)
    LEFT = "l"
    RIGHT = "r"


@pytest.mark.parametrize("kind", [list, lambda labels: np.array(labels, dtype=object)], ids=["list", "array"])
def test_members_of_an_enum_of_strings_are_their_values(kind):
    labels = kind([Cue.RIGHT if k % 2 else Cue.LEFT for k in y])
    weights = {Cue.LEFT: 1.0, Cue.RIGHT: 2.0}
    model = RiemannianLVQ(prototypes_per_class={Cue.LEFT: 1, Cue.RIGHT: 2}, class_weight=weights, max_epochs=0)
    model.fit(X, labels)
    assert model.classes_.tolist() == ["l", "r"]
    assert model.prototype_labels_.tolist() == ["l", "r", "r"]
    assert model.predict(X[:1])[0] in (Cue.LEFT, Cue.RIGHT)
    assert check_groups(labels, len(y)).tolist() == [Cue(label).value for label in labels]


@pytest.mark.parametrize("ends", [("a", "a\0"), (b"a", b"a\0")], ids=["text", "bytes"])
def test_labels_that_an_array_would_change_are_refused_by_index(ends):
    first, last = ends
    with pytest.raises(ValueError, match=r"y\[\d\] is .*, and .* in an array of NumPy: rename the label"):
        one_type([first, last], "y")
    with pytest.raises(ValueError, match=r"groups\[\d\] is .*: rename the group"):
        check_groups(np.array([first, last], dtype=object), 2)


SETTINGS = {
    "prototypes": {"prototypes_per_class": {0: 2, 1: 1, 2: 1, 3: 1}},
    "weights": {"class_weight": {0: 2.0, 1: 1.0, 2: 1.0, 3: 1.0}},
    "given": {"init": (X[::5], y[::5])},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_by_label_hold_in_a_fold_that_lacks_a_class(name):
    groups = np.where(y == 3, 9, np.arange(len(y)) % 3)  # without group 9, class 3 is lacking
    model = RiemannianLVQ(sigma2=1.0, max_epochs=2, random_state=0, **SETTINGS[name])
    scores = cross_val_score(model, X, y, groups=groups, cv=LeaveOneGroupOut())
    assert np.isfinite(scores).all()
    assert scores[-1] == 0.0
    assert model.fit(X[y < 3], y[y < 3]).classes_.tolist() == [0, 1, 2]


def test_an_open_stream_may_name_labels_that_come_later():
    model = RiemannianLVQ(sigma2=1.0, random_state=0, prototypes_per_class={0: 2, 1: 1, 2: 1, 3: 1})
    for part in (y < 2, y == 2, y == 3):
        model.partial_fit(X[part], y[part])
    assert model.prototype_labels_.tolist() == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_groups_of_one_column_are_groups(shape):
    groups = (np.arange(len(y)) % 4).reshape(shape)
    fast = RiemannianLVQ(max_epochs=3, random_state=0)
    np.testing.assert_array_equal(
        fast.fit(X, y, groups=groups).prototypes_, fast.fit(X, y, groups=groups.ravel()).prototypes_
    )
    assert Recenter().fit(X, groups=groups).groups_.tolist() == [0, 1, 2, 3]


def test_groups_of_another_type_than_in_fit_are_refused():
    groups = np.arange(len(y)) % 2
    for transformer in (Recenter(), Recenter(online=True)):
        transformer.fit(X, groups=groups)
        with pytest.raises(ValueError, match=r"groups\[0\] is '0', but fit was given groups of another type, \[0, 1\]"):
            transformer.transform(X, groups=groups.astype(str))
    with pytest.raises(ValueError, match="another type"):
        transformer.partial_fit(X, groups=groups.astype(str))


def test_strings_of_h5py_are_labels(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["fixed"], file["free"] = np.array([b"a", b"b"])[y % 2], ["ab"[k % 2] for k in y]
        for name in ("fixed", "free"):
            assert RiemannianLVQ(max_epochs=0).fit(X, file[name]).classes_.tolist() == [b"a", b"b"]
