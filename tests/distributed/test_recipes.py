"""The recipes of the page Scale: samples are read where they are needed, whatever the format of their files."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason='needs dask: pip install ".[dask]" in the folder of rplvq')
import dask.array as da

from rplvq import HeldOut, RiemannianLVQ
from rplvq.datasets import make_syn1, read_polsar
from rplvq.distributed import DistributedLVQ


def data():
    X, y = make_syn1(n_per_class=30, n=4, random_state=0)
    order = np.random.default_rng(1).permutation(len(X))
    return X[order], y[order]


def from_shards(folder, X, y):
    for number in range(3):
        rows = slice(40 * number, 40 * number + 40)
        np.savez(folder / f"shard{number}.npz", X=X[rows], y=y[rows])

    def lazy(name, shape, dtype):
        read = dask.delayed(lambda path: np.load(path)[name])
        return da.concatenate([da.from_delayed(read(path), shape, dtype) for path in sorted(folder.glob("*.npz"))])

    return lazy("X", (40, 4, 4), float), lazy("y", (40,), int)


def from_hdf5(folder, X, y):
    h5py = pytest.importorskip("h5py", reason="needs h5py: pip install h5py")
    with h5py.File(folder / "data.h5", "w") as file:
        file["X"], file["y"] = X, y
    file = h5py.File(folder / "data.h5")
    return da.from_array(file["X"], chunks=(40, -1, -1)), da.from_array(file["y"], chunks=40)


def from_zarr(folder, X, y):
    pytest.importorskip("zarr", reason="needs zarr: pip install zarr")
    for name, values in (("X", X), ("y", y)):
        da.from_array(values, chunks=(40, *values.shape[1:])).to_zarr(str(folder / f"{name}.zarr"))
    return da.from_zarr(str(folder / "X.zarr")), da.from_zarr(str(folder / "y.zarr"))


def from_parquet(folder, X, y):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install pyarrow")
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install pyarrow")
    for number in range(3):
        rows = slice(40 * number, 40 * number + 40)
        table = pyarrow.table({"X": X[rows].reshape(40, -1).tolist(), "y": y[rows]})
        pq.write_table(table, folder / f"shard{number}.parquet")

    def lazy(name, shape, dtype):
        read = dask.delayed(lambda path: np.stack(pq.read_table(path, columns=[name])[name].to_numpy()))
        paths = sorted(folder.glob("*.parquet"))
        return da.concatenate([da.from_delayed(read(path), shape, dtype) for path in paths])

    return lazy("X", (40, 16), float).reshape(-1, 4, 4), lazy("y", (40,), int)


@pytest.mark.parametrize("recipe", [from_shards, from_hdf5, from_zarr, from_parquet])
def test_files_give_the_fit_of_arrays(recipe, tmp_path):
    X, y = data()
    lvq = DistributedLVQ(RiemannianLVQ(sigma2=HeldOut(["auto"]), max_epochs=2, random_state=0))
    wanted = lvq.fit(X, y).prototypes_
    with dask.config.set(scheduler="synchronous"):
        found = lvq.fit(*recipe(tmp_path, X, y))
    np.testing.assert_array_equal(found.prototypes_, wanted)


def test_a_folder_of_radar_scenes_gives_the_fit_of_arrays(tmp_path):
    X, _ = make_syn1(n_per_class=30, n=3, random_state=0)
    X, scenes = X.astype(np.complex64), []
    for number in range(3):
        folder = tmp_path / f"scene{number}"
        folder.mkdir()
        scenes.append(X[number::3].reshape(8, 5, 3, 3))
        (folder / "config.txt").write_text("Nrow\n8\nNcol\n5\n")
        for i, j in zip(*np.triu_indices(3), strict=True):
            plane = scenes[-1][..., i, j]
            parts = {"": plane.real} if i == j else {"_real": plane.real, "_imag": plane.imag}
            for part, values in parts.items():
                values.astype("<f4").tofile(folder / f"T{i + 1}{j + 1}{part}.bin")
        np.save(folder / "labels.npy", np.arange(40) % 3)  # 0 has no label

    read = dask.delayed(lambda folder: read_polsar(folder).reshape(-1, 3, 3), pure=False)
    folders = sorted(tmp_path.glob("scene*"))
    pixels = da.concatenate([da.from_delayed(read(folder), (40, 3, 3), np.complex64) for folder in folders])
    labels = np.concatenate([np.load(folder / "labels.npy") for folder in folders])
    lvq = DistributedLVQ(RiemannianLVQ(sigma2=1.0, max_epochs=2, random_state=0))
    with dask.config.set(scheduler="synchronous"):
        found = lvq.fit(pixels[labels > 0], labels[labels > 0]).prototypes_
    whole = np.concatenate(scenes).reshape(-1, 3, 3)[labels > 0]
    np.testing.assert_array_equal(found, lvq.fit(whole, labels[labels > 0]).prototypes_)


def test_predictions_are_written_block_by_block(tmp_path):
    from dask.diagnostics import ProgressBar

    X, y = data()
    lvq = DistributedLVQ(RiemannianLVQ(max_epochs=0)).fit(X, y)
    with ProgressBar():
        da.to_npy_stack(tmp_path / "labels", lvq.predict(da.from_array(X, chunks=(40, 4, 4))))
    found = da.from_npy_stack(tmp_path / "labels")
    assert found.numblocks == (3,)
    np.testing.assert_array_equal(found.compute(), lvq.estimator_.predict(X))
