"""Data for the command line: the bundled sets by name, and files, which are not trusted.

Nothing in a file is ever unpickled. Any fault of a file raises ValueError.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from rplvq.arrays import check_groups, hard_targets, same_type
from rplvq.datasets import load_digits_covariances, make_syn1, make_syn2
from rplvq.estimators import ambient_of, resolve_manifold
from rplvq.io import UNREADABLE, open_members
from rplvq.protocols import Array

DATASETS: dict[str, Callable[[int], tuple[Array, Array]]] = {  # functions of a seed that return X and y, by name
    "syn1": lambda seed: make_syn1(random_state=seed),
    "syn2": lambda seed: make_syn2(random_state=seed),
    "digits": lambda _: load_digits_covariances(),
}

BY_FILE = "@file"  # value of --groups that makes each file a group

LOADERS = {  # how to read other files, by suffix
    ".mat": "table = scipy.io.loadmat(name); X, y = table['X'], table['y'].ravel()",
    ".csv": "table = numpy.loadtxt(name, delimiter=','); X, y = table[:, :-1].reshape(-1, n, n), table[:, -1]",
}


class Names(NamedTuple):
    """The names of the arrays of samples and labels in .npz files."""

    X: str = "X"
    y: str = "y"


NAMES = Names()


class Loaded(NamedTuple):
    """Samples X (N, ...), their labels y (N,) or (N, C) if all files have them, and the number of samples by file."""

    X: Array
    y: Array | None
    sizes: dict[str, int]


def load_data(sources: Sequence[str], seed: int, names: Names = NAMES, *, labelled: bool = True) -> Loaded:
    """Read bundled sets, .npz files, .npy files of samples, and all such files of folders, one after the other."""
    paths = list(dict.fromkeys(path for source in sources for path in _paths(source)))
    parts = [DATASETS[path](seed) if path in DATASETS else _read(path, names, labelled) for path in paths]
    sizes = {path: len(X) for path, (X, _) in zip(paths, parts, strict=True)}
    first_X, first_y = parts[0]
    for path, (X, y) in zip(paths, parts, strict=True):
        if X.shape[1:] != first_X.shape[1:]:
            raise ValueError(f"--data {path!r} has samples of shape {X.shape[1:]}, {paths[0]!r} {first_X.shape[1:]}")
        if not _is_alike(y, first_y):
            raise ValueError(f"--data {path!r} and {paths[0]!r} differ in whether and how samples are labelled")
    if len(parts) == 1:
        return Loaded(first_X, first_y, sizes)
    labels = None if first_y is None else np.concatenate([y for _, y in parts])
    return Loaded(np.concatenate([X for X, _ in parts]), labels, sizes)


def _is_alike(one: Array | None, other: Array | None) -> bool:
    """Whether two arrays, or neither, can follow each other: a string and a number would become equal strings."""
    if one is None or other is None:
        return one is other
    return one.shape[1:] == other.shape[1:] and same_type(one, other)


def _paths(source: str) -> list[str]:
    """Return the files of a folder, sorted by name, and any other source as it is."""
    if source in DATASETS or not Path(source).is_dir():
        return [source]
    if not (files := sorted(str(path) for path in Path(source).iterdir() if path.suffix in (".npz", ".npy"))):
        raise ValueError(f"--data {source!r} is a folder without .npz and .npy files")
    return files


def load_groups(name: str, loaded: Loaded) -> Array:
    """Return the groups (N,) of samples: their files, an array of the files with the samples, or a .npy file."""
    if name == BY_FILE:
        stems = [Path(path).stem for path in loaded.sizes]
        return np.repeat(stems if len({*stems}) == len(stems) else list(loaded.sizes), list(loaded.sizes.values()))
    if Path(name).suffix == ".npy":
        parts = [_read_members(name, (), ".npy", "--groups")["X"]]
        sizes = [len(loaded.X)]
    else:
        if bundled := [path for path in loaded.sizes if path in DATASETS]:
            raise ValueError(f"--groups {name!r}: {bundled[0]} holds no groups, give a .npy file with one per sample")
        parts = [_read_members(path, (name,), ".npz", "--data")[name] for path in loaded.sizes]
        sizes = list(loaded.sizes.values())
    for part, size in zip(parts, sizes, strict=True):
        if part.dtype.kind not in "biufSU" or not _is_alike(part, parts[0]):
            raise ValueError(f"--groups {name!r} must hold numbers or strings, in all files alike, got {part.dtype}")
        check_groups(part, size)
    return check_groups(np.concatenate(parts), len(loaded.X))


def draw(X: Array, y: Array, groups: Array | None, count: int, seed: int) -> tuple[Array, Array, Array | None]:
    """Draw some samples without replacement, with the shares of the classes; keep their order."""
    if count == len(X):
        return X, y, groups
    if count > len(X):
        raise ValueError(f"--samples {count} is more than the {len(X)} samples of --data")
    hard = hard_targets(y) if y.ndim == 2 else y
    try:
        rows = np.sort(train_test_split(np.arange(len(X)), train_size=count, stratify=hard, random_state=seed)[0])
    except ValueError as error:
        raise ValueError(f"--samples {count}: {error}") from error
    return X[rows], y[rows], None if groups is None else groups[rows]


def _read(path: str, names: Names, labelled: bool) -> tuple[Array, Array | None]:
    """Return X and y of a file, None for y if there is none; raise ValueError if they have wrong types or shapes."""
    if Path(path).suffix == ".npy" and not labelled:
        names = NAMES
        members = _read_members(path, (), ".npy", "--data")
    else:
        members = _read_members(path, names if labelled else (names.X,), ".npz", "--data", names)
    X = members[names.X]
    y = members.get(names.y)
    if X.dtype.kind not in "iufc" or X.ndim < 2:
        raise ValueError(f"{names.X} in {path!r} must hold numbers, shape (N, n, n), got {X.dtype} of shape {X.shape}")
    if y is None:
        return X, None
    if y.dtype.kind not in "biufSU" or y.ndim not in (1, 2):
        raise ValueError(f"{names.y} in {path!r} must hold N numbers or strings, got {y.dtype} of shape {y.shape}")
    if len(X) != len(y):
        raise ValueError(f"{names.X} and {names.y} in {path!r} differ in length: {len(X)} samples, {len(y)} labels")
    return X, y.ravel() if y.shape[1:] == (1,) else y  # MATLAB stores all vectors as matrices


def _read_members(
    path: str, needed: Sequence[str], kind: str, option: str, wanted: Sequence[str] = ()
) -> dict[str, Array]:
    """Return the members ``needed`` of a .npz file, and those of ``wanted`` that it has; of a .npy file its array X."""
    if not Path(path).is_file():
        known = f" nor a folder nor one of {', '.join(DATASETS)}" if option == "--data" else ""
        raise ValueError(f"{option} {path!r} is {'neither' if known else 'not'} a file{known}")
    if loader := LOADERS.get(Path(path).suffix.lower()):
        raise ValueError(f"{option} {path!r} is no .npz file. Write one: {loader}; numpy.savez(path, X=X, y=y)")
    try:
        with open(path, "rb") as file:
            if kind == ".npz":
                return _read_archive(file, needed, wanted)
            return {"X": np.lib.format.read_array(file, allow_pickle=False)}
    except UNREADABLE as error:
        why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        if "allow_pickle=False" in why:  # NumPy's advice would run what the file holds
            what = " or ".join(dict.fromkeys((*needed, *wanted))) or "it"
            why = f"{what} holds Python objects, which are not loaded: store numbers, or strings as y.astype(str)"
        raise ValueError(f"{option} {path!r} can't be read as {kind}: {why}") from error


def _read_archive(file: BinaryIO, needed: Sequence[str], wanted: Sequence[str]) -> dict[str, Array]:
    with open_members(file, deflated=True) as members:
        for name in (name for name in needed if name not in members):
            remedy = "; name the arrays by --x-name and --y-name" if name in wanted else ""
            raise ValueError(f"it has no member {name!r}, only {list(members)}{remedy}")
        return {name: members[name]() for name in dict.fromkeys((*needed, *wanted)) if name in members}


def check_samples(X: Array, y: Array, metrics: Sequence[str], n_splits: int) -> None:
    """Check that X suits all metrics and each class has a sample per fold, so that errors name rows of the file."""
    for metric in metrics:
        try:
            ambient_of(resolve_manifold(metric)).encode(X)
        except ValueError as error:
            raise ValueError(f"metric {metric}: {error}") from error
    classes, counts = np.unique(y.argmax(axis=1) if y.ndim == 2 else y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y holds only one class, {classes.tolist()}: at least two are needed")
    if counts.min() < n_splits:
        few = f"class {classes[counts.argmin()].item()!r} has {counts.min()} sample(s), fewer than the {n_splits} folds"
        raise ValueError(f"{few}: lower --splits, or remove this class from the data")
