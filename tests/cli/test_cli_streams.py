"""What the command line prints, and where: closed and broken streams, other encodings, other types of labels."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from rplvq import RiemannianLVQ, load_model
from rplvq.cli import main
from rplvq.datasets import make_syn1
from tests.commands import FAST, fails

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def labelled(make):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    return X, make(np.array(["a", "b", "\xe9", "\u4e2d"])[y])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of data and a model, both with labels that ASCII lacks."""
    tmp_path = tmp_path_factory.mktemp("streams")
    X, y = labelled(np.asarray)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    RiemannianLVQ("log_euclidean", sigma2=1.0, max_epochs=1, random_state=0).fit(X, y).save(tmp_path / "model.npz")
    return tmp_path


def commands(folder):
    data, model = (str(folder / name) for name in ("data.npz", "model.npz"))
    return {
        "fit": ["fit", "--data", data, "--model", str(folder / "new.npz"), "--epochs", "1", "--sigma2", "1"],
        "predict": ["predict", "--data", data, "--model", model, "--proba"],
        "info": ["info", model],
        "compare": ["compare", "--data", data, *FAST, "--metrics", "euclid"],
        "help": ["fit", "--help"],
    }


def shell(folder, arguments, redirections, encoding="utf-8"):
    """Run a command in a shell with redirections of its streams; return the finished process."""
    script = f'"$@" {redirections}'
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": encoding}
    command = ["bash", "-c", f"set -o pipefail; {script}", "bash", sys.executable, "-m", "rplvq", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)


def slow(*case):
    """A case of which each run starts a process, and which others stand for."""
    return pytest.param(*case, marks=pytest.mark.slow)


needs_bash = pytest.mark.skipif(sys.platform == "win32", reason="the tests redirect streams in bash")


STREAMS = {
    "no streams": (">&- 2>&- <&-", 0),
    "a pipe that is closed": ("| true", 141),
    "a full disk": (">/dev/full", 2),
}


@needs_bash
@pytest.mark.parametrize(
    ("name", "streams"),
    # All output but the help, which argparse prints, goes through one function, so that one command stands for all.
    [("fit", "no streams")]
    + [slow(name, streams) for streams in ("a pipe that is closed", "a full disk") for name in ("fit", "help")]
    + [slow("compare", "no streams")],
)
def test_streams_that_take_nothing(files, name, streams):
    redirections, status = STREAMS[streams]
    if "full" in redirections and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    (files / "new.npz").unlink(missing_ok=True)
    done = shell(files, commands(files)[name], redirections)
    errors = done.stderr.decode()
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
    assert done.returncode == status, errors
    if status == 2:
        assert errors.splitlines()[-1].endswith("No space left on device")
    if name == "fit":
        assert load_model(files / "new.npz").n_epochs_ == 1


@needs_bash
@pytest.mark.parametrize("name", ["predict", slow("compare"), slow("help")])
def test_an_output_in_ascii_escapes_what_ascii_lacks(files, name):
    done = shell(files, commands(files)[name], "", "ascii")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr.decode()
    if name == "predict":
        labels = {row["label"] for row in csv.DictReader(io.StringIO(done.stdout.decode("ascii")))}
        assert labels == {"a", "b", "\\xe9", "\\u4e2d"}


@pytest.mark.parametrize("name", ["fit", "predict", "info"])
def test_json_is_ascii_and_holds_the_labels(files, capsys, name):
    assert main([*commands(files)[name], "--json"]) == 0
    text = capsys.readouterr().out
    assert text.isascii()
    found = json.loads(text)
    found = found.get("classifier", found)
    assert set(found.get("classes", found.get("labels"))) == {"a", "b", "\xe9", "\u4e2d"}


LABELS = {
    "column": lambda y: y[:, None],
    "bytes": lambda y: np.array([label.encode() for label in y]),
    "bytes in a column": lambda y: np.array([label.encode() for label in y])[:, None],
    "numbers": lambda y: np.unique(y, return_inverse=True)[1],
    "column of floats": lambda y: np.unique(y, return_inverse=True)[1][:, None] * 1.0,
    "truth values": lambda y: y == "a",
}


@pytest.mark.filterwarnings("error::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
def test_all_commands_take_the_labels_that_fit_takes(tmp_path, capsys, make):
    X, y = labelled(make)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    options = ["--data", str(tmp_path / "data.npz"), "--json"]
    assert main(["fit", *options, "--model", str(tmp_path / "m.npz"), "--epochs", "1", "--quiet"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    model = RiemannianLVQ(max_epochs=1, random_state=0).fit(X, y.ravel())
    np.testing.assert_array_equal(load_model(tmp_path / "m.npz").classes_, model.classes_)
    assert main(["predict", *options, "--model", str(tmp_path / "m.npz"), "--proba"]) == 0
    predicted = json.loads(capsys.readouterr().out)
    assert predicted["accuracy"] == fitted["training_accuracy"] == model.score(X, y.ravel())
    texts = [label.decode() if isinstance(label, bytes) else label for label in model.predict(X).tolist()]
    assert predicted["labels"] == texts
    assert main(["predict", *options[:2], "--model", str(tmp_path / "m.npz")]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["label"] for row in rows] == [str(text) for text in texts]
    assert main(["info", str(tmp_path / "m.npz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classifier"]["classes"] == predicted["classes"]
    assert main(["compare", *options, *FAST, "--metrics", "euclid", "--quiet"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2


def test_labels_of_any_type_that_a_model_can_hold_are_printed(tmp_path, capsys):
    X, y = labelled(lambda y: np.datetime64("2020-01-01") + np.unique(y, return_inverse=True)[1])
    RiemannianLVQ(max_epochs=0).fit(X, y).save(tmp_path / "m.npz")
    np.save(tmp_path / "X.npy", X[:1])
    assert main(["predict", "--data", str(tmp_path / "X.npy"), "--model", str(tmp_path / "m.npz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == ["2020-01-01"]


@pytest.mark.filterwarnings("ignore:Custom dtypes are saved as python objects")
def test_labels_that_numpy_pickles_are_refused_with_the_remedy(tmp_path, capsys):
    X, y = labelled(lambda y: y.astype(np.dtypes.StringDType()))
    np.savez(tmp_path / "data.npz", X=X, y=y)
    for command in (["compare"], ["fit", "--model", str(tmp_path / "m.npz")]):
        assert "y.astype(str)" in fails(capsys, [*command, "--data", str(tmp_path / "data.npz")])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--metric", "manhattan"),
        ("--metric", ""),
        ("--cost", "hinge"),
        ("--prototypes", "many"),
        ("--epochs", "1.5"),
        ("--sigma2", "wide"),
        ("--seed", "-1"),
        ("--data", "absent"),
        ("--data", ""),
    ],
)
def test_the_value_of_an_option_that_is_not_known_is_named(capsys, tmp_path, option, value):
    line = fails(capsys, ["fit", "--model", str(tmp_path / "m.npz"), option, value])
    assert option in line
    assert repr(value) in line
    assert not (tmp_path / "m.npz").exists()
