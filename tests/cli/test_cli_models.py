"""The commands about one model: fit, predict and info, as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

from rplvq import Recenter, RejectOption, RiemannianLVQ, load_model, save_model
from rplvq.cli import main
from rplvq.cli._data import Names, load_data, load_groups
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
    assert found["classifier"]["classes"] == ["a", "b", "c", "d"]
    assert found["classifier"]["parameters"]["prototypes_per_class"] == 2
    assert found["data"]["counts"][3] == {"class": "d", "samples": 9}
    for line in ("# Model card: RiemannianLVQ", "- classes: a, b, c, d", "- sigma2: 1.5", "| d | 9 |"):
        assert line in text.splitlines()
    assert f"- sha256: {found['data']['sha256']}" in text.splitlines()


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


def saved_pipeline(folder, capsys, *options):
    path = str(folder / "pipeline.npz")
    command = ["train", "--data", str(folder / "data.npz"), "--model", path, "--quiet", "--steps", "recenter"]
    assert main([*command, "--epochs", "1", *options]) == 0
    capsys.readouterr()
    return path


def test_train_and_predict_with_a_pipeline(data, capsys):
    path = saved_pipeline(data, capsys, "--set", "recenter__tol=1e-6", "--set", "lvq__metric=log_euclidean")
    X, y = (np.load(data / "data.npz")[name] for name in ("X", "y"))
    lvq = RiemannianLVQ("log_euclidean", max_epochs=1, random_state=0)
    wanted = make_pipeline(Recenter(tol=1e-6), lvq).fit(X, y)
    assert main(["predict", "--model", path, "--data", str(data / "samples.npy"), "--proba", "--jobs", "2"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["label"] for row in rows] == wanted.predict(X[:5]).tolist()
    shown = [[float(row[f"p({label})"]) for label in "abcd"] for row in rows]
    np.testing.assert_allclose(shown, wanted.predict_proba(X[:5]), rtol=1e-8)
    command = ["train", "--model", path, "--data", str(data / "data.npz"), "--steps", "recenter", "--quiet"]
    assert main([*command, "--coverage", "1", "--set", "lvq__max_epochs=0"]) == 0
    option = load_model(path)
    assert option.estimator_[-1].n_epochs_ == 0
    capsys.readouterr()
    assert "Invalid parameter 'nothing'" in fails(capsys, [*command, "--set", "nothing=1"])
    assert "must be NAME=VALUE, got 'tol'" in fails(capsys, [*command, "--set", "tol"])


def test_data_of_many_files_and_folders_in_groups(tmp_path, capsys):
    X, y = make_syn1(n_per_class=12, n=4, random_state=0)
    X[1::2] *= 9
    (tmp_path / "days").mkdir()
    for name, rows in (("monday", slice(0, None, 2)), ("tuesday", slice(1, None, 2))):
        np.savez(tmp_path / "days" / f"{name}.npz", epochs=X[rows], cue=y[rows], subject=np.full(len(X[rows]), name))
    names = ["--x-name", "epochs", "--y-name", "cue"]
    order = np.r_[0 : len(X) : 2, 1 : len(X) : 2]
    session = np.repeat(["monday", "tuesday"], len(X) // 2)
    with sklearn.config_context(enable_metadata_routing=True):
        wanted = make_pipeline(Recenter(), RiemannianLVQ(max_epochs=1, random_state=0))
        wanted.fit(X[order], y[order], groups=session)
    files = [str(tmp_path / "days" / f"{name}.npz") for name in ("monday", "tuesday")]
    for sources, groups in ((files, "@file"), ([str(tmp_path / "days")], "subject")):
        command = ["train", "--data", *sources, "--model", str(tmp_path / "m"), "--groups", groups, *names, "--quiet"]
        assert main([*command, "--steps", "recenter", "--epochs", "1"]) == 0
        np.testing.assert_array_equal(load_model(tmp_path / "m")[-1].prototypes_, wanted[-1].prototypes_)
    capsys.readouterr()
    use = ["predict", "--model", str(tmp_path / "m"), "--data", *files, *names]
    assert "pass groups" in fails(capsys, use)
    assert main([*use, "--groups", "@file"]) == 0
    with sklearn.config_context(enable_metadata_routing=True):
        labels = wanted.predict(X[order], groups=session)
    assert capsys.readouterr().out.split() == ["label", *map(str, labels)]
    assert "no member 'X', only ['epochs', 'cue', 'subject']; name the arrays by --x-name" in fails(capsys, use[:-4])
    np.save(tmp_path / "days" / "other.npy", X[:, :3, :3])
    assert "has samples of shape (3, 3)" in fails(capsys, [*use[:4], str(tmp_path / "days"), *names])
    np.save(tmp_path / "days" / "other.npy", X)
    assert "differ in whether and how" in fails(capsys, [*use[:4], str(tmp_path / "days"), *names])
    np.savez(tmp_path / "days" / "other.npz", epochs=X, cue=y.astype(str))
    (tmp_path / "days" / "other.npy").unlink()
    assert "differ in whether and how" in fails(capsys, [*use[:4], str(tmp_path / "days"), *names])
    (tmp_path / "days" / "other.npz").unlink()
    (tmp_path / "again").mkdir()
    twin = tmp_path / "again" / "monday.npz"
    np.savez(twin, epochs=9 * X, cue=y, subject=np.full(len(X) + 1, "carla"))
    assert "groups" in fails(capsys, [*use[:4], str(tmp_path / "days"), str(twin), *names, "--groups", "subject"])
    groups = load_groups("@file", load_data([files[0], str(twin)], 0, Names("epochs", "cue")))
    assert groups.tolist() == [files[0]] * (len(X) // 2) + [str(twin)] * len(X)
    (tmp_path / "empty").mkdir()
    assert "is a folder without .npz and .npy files" in fails(capsys, [*use[:4], str(tmp_path / "empty")])


def test_stream_predicts_before_it_learns(tmp_path, capsys):
    X, y = make_syn1(n_per_class=30, n=4, random_state=0)
    np.savez(tmp_path / "data.npz", X=X[::2], y=y[::2])
    np.savez(tmp_path / "tuesday.npz", X=4 * X[1::2], y=y[1::2])
    np.savez(tmp_path / "bare.npz", X=4 * X[1::2])
    path = saved_pipeline(tmp_path, capsys, "--set", "recenter__online=true", "--coverage", "0.9")
    command = ["stream", path, "--groups", "@file", "--batch", "5", "--save", str(tmp_path / "after.npz")]
    for name in ("tuesday", "bare"):
        assert main([*command, "--data", str(tmp_path / f"{name}.npz"), "--reject"]) == 0
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        wanted = load_model(path)
        labels = []
        with sklearn.config_context(enable_metadata_routing=True):
            for start in range(0, len(X) // 2, 5):
                batch = 4 * X[1::2][start : start + 5]
                given = {"groups": [name] * len(batch)}
                labels += wanted.predict(batch, **given).tolist()
                if name == "tuesday":
                    wanted.partial_fit(batch, y[1::2][start : start + 5], **given)
                else:
                    wanted.estimator_[:-1].partial_fit(batch, **given)
        assert [row["label"] for row in rows] == list(map(str, labels))
        after = load_model(tmp_path / "after.npz")
        np.testing.assert_array_equal(after.estimator_[-1].prototypes_, wanted.estimator_[-1].prototypes_)
        assert list(after.estimator_[0].running_) == [name]
    with sklearn.config_context(enable_metadata_routing=True):
        save_model(make_pipeline(Recenter(), RiemannianLVQ(max_epochs=0)).fit(X, y), tmp_path / "fixed.npz")
    fixed = ["stream", "--model", str(tmp_path / "fixed.npz"), "--data", str(tmp_path / "tuesday.npz")]
    assert "the model Pipeline cannot learn from a stream: train it with --steps" in fails(capsys, fixed)


def test_an_invalid_sample_of_a_stream_has_its_index_in_the_file(tmp_path, capsys):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    save_model(RiemannianLVQ(max_epochs=0).fit(X, y), tmp_path / "model.npz")
    X[7] = -X[7]
    np.savez(tmp_path / "bad.npz", X=X, y=y)
    command = ["stream", "--model", str(tmp_path / "model.npz"), "--data", str(tmp_path / "bad.npz"), "--batch", "3"]
    assert "X[7] is not positive definite" in fails(capsys, command)


def test_a_tex_file_is_one_table(data, capsys):
    arguments = ["compare", "--data", str(data / "data.npz"), "--metrics", "euclid", "--epochs", "0", "--splits", "3"]
    out = ["--out", str(data / "table.tex"), str(data / "report")]
    assert main([*arguments, "--repeats", "1", "--jobs", "1", "--quiet", *out]) == 0
    capsys.readouterr()
    table = (data / "table.tex").read_text(encoding="utf-8")
    assert table.startswith("\\begin{tabular}")
    assert table.rstrip().endswith("\\end{tabular}")
    assert table.count("\\begin") == 1
    whole = (data / "report" / "comparison.tex").read_text(encoding="utf-8")
    assert table.strip() in whole
    assert not whole.startswith("\\begin")
