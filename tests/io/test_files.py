"""Where files may be written, what is left behind, and how much memory a file may ask for."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest

from rplvq import Checkpoint, RiemannianLVQ, load_model
from rplvq.cli import main
from rplvq.evaluation import Comparison
from rplvq.exceptions import ModelFileError
from rplvq.io import _archive as files
from rplvq.io import load_checkpoint, replace_file, require_writable
from rplvq.io._archive import DIGEST_SIZE, SEAL, seal_archive
from rplvq.plotting import save_comparison
from tests.problems import spd_classes

X, Y = spd_classes(per_class=10)
MODEL = RiemannianLVQ(max_epochs=1, random_state=0).fit(X, Y)
COMPARISON = Comparison(["a"], ["accuracy"], [(9, 1)], np.ones((1, 1, 1)), np.ones((1, 1)), np.ones((1, 1)))

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and locks of POSIX")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("folder")
    os.mkfifo("pipe")
    os.symlink("pipe", "link to a pipe")
    (tmp_path / "file").write_bytes(b"old")
    return tmp_path


def fit_with_checkpoint(path):
    """Raise as ``replace_file`` does, before training."""

    def train_on(report):
        raise AssertionError("training began")

    RiemannianLVQ(max_epochs=1, callbacks=[train_on, Checkpoint(path)]).fit(X, Y)


def run_cli(*arguments):
    """Run a command that must fail before it reads its data, which do not exist; raise what it prints."""
    with pytest.MonkeyPatch.context() as patch:
        said = io.StringIO()
        patch.setattr(sys, "stderr", said)
        assert main([*arguments, "--data", "no such data.npz"]) == 2
    raise OSError(said.getvalue())


DOORS = {
    "require_writable": require_writable,
    "replace_file": lambda path: replace_file(path, b"new"),
    "save": MODEL.save,
    "Checkpoint": fit_with_checkpoint,
    "to_csv": COMPARISON.to_csv,
    "save_comparison": lambda path: save_comparison(COMPARISON, path),
    "fit --model": lambda path: run_cli("fit", "--model", path),
    "predict --out": lambda path: run_cli("predict", "--model", "file", "--out", path),
}
REFUSED = {
    "/dev/null": "it is no regular file",
    "pipe": "it is no regular file",
    "link to a pipe": "it is no regular file",
    "folder": "it is no regular file",
    ".": "it is no regular file",
    "folder/": "it names no file",
    "new/": "it names no file",
    "": "it names no file",
    "absent/model.npz": "its folder does not exist",
    "file/model.npz": "its folder does not exist",
    "a" * 300: "File name too long",
    "nul\0": "null",
    "/proc/model.npz": "No such file",
}


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: repr(path)[:20])
@pytest.mark.parametrize("door", DOORS)
def test_what_cannot_be_written_is_refused_before_anything_is_done(door, path, in_folder):
    before = sorted(os.listdir(in_folder))
    with pytest.raises(OSError, match=REFUSED[path]) as caught:
        DOORS[door](path)
    assert repr(path).strip("'") in str(caught.value)
    assert ".tmp" not in str(caught.value)
    assert sorted(os.listdir(in_folder)) == before
    assert (in_folder / "file").read_bytes() == b"old"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("door", DOORS)
def test_a_folder_that_is_read_only_is_refused(door, in_folder):
    (in_folder / "folder").chmod(0o555)
    with pytest.raises(OSError, match=r"'folder/model.npz' cannot be written: Permission denied"):
        DOORS[door]("folder/model.npz")


def test_a_full_disk_keeps_the_old_file_and_names_the_path_of_the_user(in_folder, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    MODEL.save("model.npz")
    old, before = (in_folder / "model.npz").read_bytes(), sorted(os.listdir(in_folder))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"'model\.npz' cannot be written: No space left"):
        MODEL.save("model.npz")
    assert main(["predict", "--model", "model.npz", "--data", "syn1", "--out", "file"]) == 2
    assert (in_folder / "file").read_bytes() == b"old"
    assert (in_folder / "model.npz").read_bytes() == old
    assert sorted(os.listdir(in_folder)) == before


def test_a_checkpoint_names_its_path_when_the_folder_is_gone_in_training(in_folder):
    def remove(report):
        os.rmdir("folder")

    with pytest.raises(FileNotFoundError, match=r"/folder/fit\.npz' cannot be written: its folder does not exist"):
        RiemannianLVQ(sigma2=1.0, max_epochs=2, callbacks=[remove, Checkpoint("folder/fit.npz")]).fit(X, Y)


# --- leftovers of killed processes

KILLED = (
    "import os; from rplvq.io import replace_file; os.replace = lambda *names: os._exit(9); replace_file('x', b'1')"
)


def leftovers(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".tmp"))


def test_the_file_of_a_killed_process_is_removed_by_the_next_one(in_folder):
    assert subprocess.run([sys.executable, "-c", KILLED], timeout=120, check=False).returncode == 9
    assert len(leftovers(in_folder)) == 1
    replace_file("another.npz", b"1")
    assert leftovers(in_folder) == []
    (in_folder / ".rplvq-empty.tmp").touch()
    require_writable("model.npz")
    assert leftovers(in_folder) == []


def test_the_file_of_a_living_process_is_not_removed(in_folder, monkeypatch):
    wrote, go_on = threading.Event(), threading.Event()
    replace = os.replace

    def wait(*names):
        wrote.set()
        assert go_on.wait(60)
        replace(*names)

    monkeypatch.setattr(os, "replace", wait)
    writer = threading.Thread(target=replace_file, args=("slow.npz", b"slow"))
    writer.start()
    assert wrote.wait(60)
    monkeypatch.setattr(os, "replace", replace)
    replace_file("fast.npz", b"fast")
    assert len(leftovers(in_folder)) == 1
    go_on.set()
    writer.join()
    assert (in_folder / "slow.npz").read_bytes() == b"slow"
    assert leftovers(in_folder) == []


def test_many_writers_of_one_folder_do_not_disturb_each_other(in_folder):
    failed: list[BaseException] = []

    def write(number):
        try:
            for turn in range(50):
                replace_file(f"{number % 3}.npz", bytes([turn]) * 1000)
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert leftovers(in_folder) == []


# --- how much a file may ask for


def sealed(path, members, header=None, compression=zipfile.ZIP_STORED, change=lambda body: body):
    """Write an archive of members (bytes by name) with a seal that matches, however odd its content is."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
        archive.comment = SEAL + b"0" * DIGEST_SIZE
    body = change(buffer.getvalue()[:-DIGEST_SIZE])
    path.write_bytes(body + hashlib.sha256(body).hexdigest().encode())


def npy(array, shape=None):
    """The bytes of an array, whose header claims another shape."""
    stream = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(stream, header if shape is None else header | {"shape": shape})
    return stream.getvalue() + array.tobytes()


def deflated(path):
    sealed(path, [("x.npy", npy(np.zeros(30_000_000)))], compression=zipfile.ZIP_DEFLATED)


def many_members(path):
    sealed(path, [(f"{index}.npy", npy(np.zeros(1))) for index in range(files.MOST_MEMBERS + 1)])


def long_directory(path):
    sealed(path, [(f"{index}" + "x" * 60_000, b"") for index in range(50)])


def overlapping(path):
    """Every entry of the directory points to the same large member."""
    sealed(path, [("x.npy", npy(np.zeros(1_000_000))), *[(f"{i}.npy", b"") for i in range(40)]], change=point_to_first)


def point_to_first(body):
    at, data = body.find(b"PK\1\2"), bytearray(body)
    first = bytes(data[at + 16 : at + 28])  # checksum and sizes
    while (at := data.find(b"PK\1\2", at + 4)) > 0:
        data[at + 16 : at + 28], data[at + 42 : at + 46] = first, bytes(4)
    return bytes(data)


def claimed_size(path):
    def claim(body):
        data, at = bytearray(body), body.find(b"PK\1\2")
        data[at + 20 : at + 28] = struct.pack("<2L", 4_000_000_000, 4_000_000_000)
        return bytes(data)

    sealed(path, [("x.npy", npy(np.zeros(3)))], change=claim)


def claimed_shape(path):
    header = npy(np.frombuffer(b"{}", dtype=np.uint8))
    sealed(path, [("header.npy", header), ("x.npy", npy(np.zeros(3), (300_000_000,)))])


def blank_header(path):
    header = json.dumps({"format": "rplvq-model"}).encode() + b" " * files.MOST_HEADER
    sealed(path, [("header.npy", npy(np.frombuffer(header, dtype=np.uint8)))])


def zip64(path):
    """The end of the directory says that the true one is elsewhere."""
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    sealed(path, [("x.npy", npy(np.zeros(3)))], change=lambda body: body.replace(b"PK\5\6", locator + b"PK\5\6"))


def without_magic(path):
    with open(path, "wb") as file:
        file.truncate(10**11)


def without_seal(path):
    with open(path, "wb") as file:
        file.write(b"PK\3\4")
        file.truncate(10**11)


def device(path):
    path.symlink_to("/dev/zero")


def pipe(path):
    os.mkfifo(path)


def folder(path):
    path.mkdir()


HOSTILE = {
    deflated: "its member 'x.npy' is compressed",
    many_members: "more than 4096 members",
    long_directory: "more than 4096 members, or members of long names",
    overlapping: "its members claim more bytes than",
    claimed_size: "its members claim more bytes than",
    claimed_shape: r"its member 'x.npy' is not an array of NumPy: it has \d+ bytes, too few for shape \(300000000,\)",
    blank_header: "its header has .* bytes, more than",
    zip64: "members",
    without_magic: "it is no .npz archive",
    without_seal: "has no seal",
    device: "it is no regular file",
    pipe: "it is no regular file",
    folder: "it is no regular file",
}


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_a_file_cannot_ask_for_more_memory_than_its_size(make, in_folder):
    path = in_folder / "hostile.npz"
    make(path)
    for read in (load_model, load_checkpoint):
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError, match=r"hostile\.npz.*" + HOSTILE[make]):
                read(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        size = path.stat().st_size if make not in (without_magic, without_seal) else 0
        assert peak < 3 * size + 5_000_000, read


def test_what_could_not_be_read_again_is_not_written():
    with pytest.raises(ValueError, match="cannot be saved: it has 4097 arrays and a header"):
        seal_archive({}, {str(index): np.zeros(1) for index in range(files.MOST_MEMBERS)})
    with pytest.raises(ValueError, match=r"it has 1 arrays and a header of \d+ bytes, above 4096 or 16777216"):
        seal_archive({"x": " " * files.MOST_HEADER}, {})


def test_data_for_the_command_line_are_bounded_and_may_be_compressed(in_folder, capsys):
    fit = ["fit", "--model", "new.npz", "--epochs", "0", "--quiet", "--data", "data.npz"]
    np.savez_compressed("data.npz", X=X, y=Y)
    assert main(fit) == 0
    os.remove("new.npz")
    np.savez_compressed("data.npz", X=np.zeros((3_000_000, 2, 2)), y=np.zeros(3_000_000))
    assert main(fit) == 2
    assert "its members claim more bytes than a file of" in capsys.readouterr().err
    np.savez("data.npz", X=X, y=Y, **{f"other{index}": index for index in range(files.MOST_MEMBERS)})
    assert main(fit) == 2
    assert "more than 4096 members" in capsys.readouterr().err
    with zipfile.ZipFile("data.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("X.npy", npy(X))
        archive.writestr("y.npy", npy(Y))
    assert main(fit) == 2
    assert "is compressed" in capsys.readouterr().err
    assert not (in_folder / "new.npz").exists()
