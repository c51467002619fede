"""The commands about one model: fit, predict and info, as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from rplvq import RejectOption, RiemannianLVQ, load_model
from rplvq.cli import main
from rplvq.cli._data import load_data
from rplvq.datasets import make_syn1
from tests.commands import fails
from tests.problems import spd


@pytest.fixture
def data(tmp_path):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    np.savez(tmp_path / "data.npz", X=X, y=np.array(["a", "b", "c", "d"])[y])
    np.savez(tmp_path / "samples.npz", X=X[:5])
    np.save(tmp_path / "samples.npy", X[:5])
    return tmp_path


@pytest.fixture
def model(data, capsys):
    path = str(data / "model.npz")
    options = ["--metric", "log_euclidean", "--cost", "plvq", "--prototypes", "2", "--epochs", "2", "--sigma2", "1.5"]
    assert main(["fit", "--data", str(data / "data.npz"), "--model", path, "--quiet", "--seed", "3", *options]) == 0
    capsys.readouterr()
    return path


def test_fit_writes_the_model_that_it_was_asked_for(model):
    loaded = load_model(model)
    assert loaded.classes_.tolist() == ["a", "b", "c", "d"]
    assert loaded.prototypes_.shape == (8, 4, 4)
    assert (loaded.metric, loaded.cost, loaded.sigma2_, loaded.n_epochs_) == ("log_euclidean", "plvq", 1.5, 2)
    assert loaded.random_state == 3


def test_fit_says_what_it_made(data, capsys):
    arguments = ["fit", "--data", str(data / "data.npz"), "--model", str(data / "m.npz"), "--epochs", "1"]
    assert main([*arguments, "--sigma2", "1", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    model = load_model(data / "m.npz")
    with np.load(data / "data.npz") as members:
        assert found["training_accuracy"] == model.score(members["X"], members["y"])
    assert found["epochs"] == 1
    assert found["last_epoch"]["cost"] == model.history_["cost"][-1]
    assert "0/1" in captured.err  # progress


def test_fit_holds_out_whole_groups(tmp_path, capsys):
    X, y = make_syn1(n_per_class=30, n=4, random_state=0)
    groups = np.arange(len(X)) % 7
    np.savez(tmp_path / "data.npz", X=X, y=y, subject=groups)
    command = ["fit", "--data", str(tmp_path / "data.npz"), "--model", str(tmp_path / "m.npz"), "--quiet", "--groups"]
    assert "no member 'session'" in fails(capsys, [*command, "session"])
    assert main([*command, "subject"]) == 0
    found, wanted = load_model(tmp_path / "m.npz"), RiemannianLVQ(max_epochs=20, random_state=0)
    assert found.choice_ == wanted.fit(X, y, groups=groups).choice_
    assert found.choice_ != wanted.fit(X, y).choice_


@pytest.mark.parametrize("name", ["samples.npz", "samples.npy"])
def test_predict_prints_labels_and_probabilities(data, model, capsys, name):
    samples = str(data / name)
    assert main(["predict", "--model", model, "--data", samples, "--proba"]) == 0
    captured = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(captured.out)))
    loaded, X = load_model(model), np.load(data / "samples.npy")
    assert [row["label"] for row in rows] == loaded.predict(X).tolist()
    shown = [[float(row[f"p({label})"]) for label in "abcd"] for row in rows]
    np.testing.assert_allclose(shown, loaded.predict_proba(X), rtol=1e-8)
    assert captured.err == ""


def test_predict_tells_the_accuracy_where_labels_are_known(data, model, capsys):
    assert main(["predict", "--model", model, "--data", str(data / "data.npz"), "--json", "--jobs", "2"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    with np.load(data / "data.npz") as members:
        assert found["accuracy"] == load_model(model).score(members["X"], members["y"])
    assert len(found["labels"]) == 36
    assert captured.err == f"rplvq: accuracy {found['accuracy']:.4f} of 36 samples\n"


def test_predict_rejects_what_is_far_from_all(data, model, capsys):
    options, samples, new = (
        ["--epochs", "0", "--quiet", "--coverage", "0.9"],
        str(data / "far.npy"),
        str(data / "new.npz"),
    )
    assert main(["fit", "--data", str(data / "data.npz"), "--model", new, *options]) == 0
    X = np.load(data / "samples.npy")
    np.save(samples, np.concatenate([X, 1e4 * X]))
    capsys.readouterr()
    assert main(["predict", "--model", new, "--data", samples, "--reject", "--proba"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    option = RejectOption.load(new)
    assert [row["label"] for row in rows] == option.predict(np.load(samples)).tolist()
    assert [row["reason"] for row in rows][5:] == ["far from all"] * 5
    assert [row["label"] for row in rows][5:] == ["rejected"] * 5
    assert main(["predict", "--model", new, "--data", samples]) == 0
    assert "rejected" not in capsys.readouterr().out
    assert main(["predict", "--model", new, "--data", samples, "--reject", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reasons"] == option.reasons(np.load(samples)).tolist()
    assert "holds no reject option" in fails(capsys, ["predict", "--model", model, "--data", samples, "--reject"])
    wrong = ["fit", "--model", new, "--coverage", "0.9", "--checkpoint", str(data / "c.npz")]
    assert "--coverage fits several models" in fails(capsys, wrong)
    assert "above 0 and at most 1, got '1.5'" in fails(capsys, ["fit", "--model", new, "--coverage", "1.5"])


def test_predict_writes_only_where_told(data, model, capsys, tmp_path):
    before = sorted(tmp_path.iterdir())
    out = tmp_path / "labels.csv"
    assert main(["predict", "--model", model, "--data", str(data / "samples.npy"), "--out", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert len(out.read_text(encoding="utf-8").splitlines()) == 6
    assert sorted(set(tmp_path.iterdir()) - {out}) == before


def test_info_as_text_and_json_say_the_same(model, capsys):
    assert main(["info", model, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["info", model]) == 0
    text = capsys.readouterr().out
    assert found["classes"] == ["a", "b", "c", "d"]
    assert found["parameters"]["prototypes_per_class"] == 2
    for line in ("classes: ['a', 'b', 'c', 'd']", "sigma2: 1.5", "  metric: log_euclidean"):
        assert line in text.splitlines()


def test_compare_as_json(data, capsys):
    arguments = ["compare", "--data", str(data / "data.npz"), "--metrics", "euclid", "--epochs", "1", "--splits", "3"]
    assert main([*arguments, "--repeats", "1", "--jobs", "1", "--quiet", "--json", "--out", str(data / "report")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["estimator"] for row in found["rows"]] == ["euclid rslvq", "euclid MDM"]
    assert len(found["folds"]) == 6
    accuracy, kappa = found["differences"]
    assert (accuracy["metric"], kappa["metric"]) == ("accuracy", "kappa")
    assert (accuracy["first"], accuracy["second"]) == ("euclid rslvq", "euclid MDM")
    assert 0 < accuracy["p"] <= 1
    (sentence,) = found["conclusions"]
    assert "euclid MDM" in sentence
    assert found["about"]["data"] == str(data / "data.npz")


def test_soft_labels_of_a_file_count_by_their_largest(tmp_path, capsys):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    np.savez(tmp_path / "soft.npz", X=X, y=np.eye(4)[y] * 0.8 + 0.05)
    arguments = ["fit", "--data", str(tmp_path / "soft.npz"), "--cost", "plvq", "--epochs", "1", "--quiet", "--json"]
    assert main([*arguments, "--model", str(tmp_path / "m.npz")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["training_accuracy"] == load_model(tmp_path / "m.npz").score(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], "required: --model"),
        (["fit", "--model", "absent/folder/m.npz"], "its folder does not exist"),
        (["fit", "--model", "m.npz", "--metric", "manhattan"], "invalid choice: 'manhattan'"),
        (["predict", "--model", "absent.npz", "--data", "syn1"], "absent.npz"),
        (["info", "absent.npz"], "absent.npz"),
        (["info"], "required: FILE.npz"),
    ],
)
def test_wrong_arguments_take_one_line(capsys, arguments, message):
    assert message in fails(capsys, arguments)


def test_files_that_are_no_models_or_samples_take_one_line(data, model, capsys):
    assert "data.npz" in fails(capsys, ["info", str(data / "data.npz")])
    (data / "junk.npy").write_bytes(b"\x93NUMPY\x01\x00junk")
    assert "can't be read as .npy" in fails(capsys, ["predict", "--model", model, "--data", str(data / "junk.npy")])
    np.save(data / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "Python objects" in fails(capsys, ["predict", "--model", model, "--data", str(data / "objects.npy")])
    np.save(data / "words.npy", np.array([["a"]]))
    assert "must hold numbers" in fails(capsys, ["predict", "--model", model, "--data", str(data / "words.npy")])
    np.save(data / "other.npy", np.eye(3)[None])
    assert "X" in fails(capsys, ["predict", "--model", model, "--data", str(data / "other.npy")])
    np.savez(data / "labels.npz", y=np.arange(3))
    assert "has no member 'X'" in fails(capsys, ["predict", "--model", model, "--data", str(data / "labels.npz")])


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # NumPy's own, without compiled steps
def test_samples_of_bundled_sets_go_by_name():
    X, y, _ = load_data(["syn1"], 2)
    np.testing.assert_array_equal(X, make_syn1(random_state=2)[0])
    assert len(y) == 1000


def test_an_image_of_matrices_gives_one_line_per_pixel(model, capsys, tmp_path):
    rng = np.random.default_rng(0)
    samples = spd(rng, 6, load_model(model).n_features_in_)
    np.savez(tmp_path / "batch.npz", X=samples)
    np.savez(tmp_path / "image.npz", X=samples.reshape(2, 3, *samples.shape[1:]))
    texts = []
    for name in ("batch", "image"):
        main(["predict", "--model", model, "--data", str(tmp_path / f"{name}.npz"), "--proba"])
        texts.append(capsys.readouterr().out.splitlines())
    assert texts[1][0] == f"row,column,{texts[0][0]}"
    places = [(row, column) for row in range(2) for column in range(3)]
    assert texts[1][1:] == [f"{row},{column},{line}" for (row, column), line in zip(places, texts[0][1:], strict=True)]
    labels = load_model(model).predict(samples)
    np.savez(tmp_path / "image.npz", X=samples.reshape(2, 3, *samples.shape[1:]), y=labels.reshape(2, 3))
    main(["predict", "--model", model, "--data", str(tmp_path / "image.npz")])
    assert "accuracy 1.0000 of 6 samples" in capsys.readouterr().err
