"""The recipes of the page Scale: samples are read where they are needed, whatever the format of their files."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="needs dask: pip install 'rplvq[dask]'")
import dask.array as da

from rplvq import HeldOut, RiemannianLVQ
from rplvq.datasets import make_syn1
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
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "data.h5", "w") as file:
        file["X"], file["y"] = X, y
    file = h5py.File(folder / "data.h5")
    return da.from_array(file["X"], chunks=(40, -1, -1)), da.from_array(file["y"], chunks=40)


def from_zarr(folder, X, y):
    pytest.importorskip("zarr")
    for name, values in (("X", X), ("y", y)):
        da.from_array(values, chunks=(40, *values.shape[1:])).to_zarr(str(folder / f"{name}.zarr"))
    return da.from_zarr(str(folder / "X.zarr")), da.from_zarr(str(folder / "y.zarr"))


@pytest.mark.parametrize("recipe", [from_shards, from_hdf5, from_zarr])
def test_files_give_the_fit_of_arrays(recipe, tmp_path):
    X, y = data()
    lvq = DistributedLVQ(RiemannianLVQ(sigma2=HeldOut(["auto"]), max_epochs=2, random_state=0))
    wanted = lvq.fit(X, y).prototypes_
    with dask.config.set(scheduler="synchronous"):
        found = lvq.fit(*recipe(tmp_path, X, y))
    np.testing.assert_array_equal(found.prototypes_, wanted)


def test_predictions_are_written_block_by_block(tmp_path):
    from dask.diagnostics import ProgressBar

    X, y = data()
    lvq = DistributedLVQ(RiemannianLVQ(max_epochs=0)).fit(X, y)
    with ProgressBar():
        da.to_npy_stack(tmp_path / "labels", lvq.predict(da.from_array(X, chunks=(40, 4, 4))))
    found = da.from_npy_stack(tmp_path / "labels")
    assert found.numblocks == (3,)
    np.testing.assert_array_equal(found.compute(), lvq.estimator_.predict(X))
