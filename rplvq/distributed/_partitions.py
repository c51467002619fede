"""Samples in partitions on the workers: encoded and read there, so that only sums and a few samples travel."""

import ctypes
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from typing import Any, TypeAlias, TypeVar

import attrs
import numpy as np

from rplvq.arrays import Samples, matrix_size, single_blas_thread
from rplvq.io import digest_of
from rplvq.protocols import Array, ArrayLike

try:
    import dask
    import dask.array as da
    from dask.delayed import Delayed
except ImportError as error:  # pragma: no cover - tested in an environment of its own
    raise ImportError("rplvq.distributed needs dask: pip install '.[dask]' in the folder of rplvq") from error

ResultT = TypeVar("ResultT")
DaskArrayLike: TypeAlias = da.Array | ArrayLike
Each: TypeAlias = Sequence[Sequence[object]]  # arguments of the calls, one sequence per block
MOST_BLOCKS = 64  # an array of NumPy is cut into at most so many blocks, of at least as many samples as a part may have
SAME = ("rplvq", "numpy", "numba")  # packages of one version on all workers, so that they compute the same bits


@attrs.frozen(eq=False)
class Partitions:
    """P objects of Dask that yield one :class:`rplvq.arrays.Samples` each, kept by the workers if they ``persist``."""

    blocks: Sequence[Delayed]
    sizes: Array
    persist: bool = True

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def map(self, function: Callable[..., ResultT], *shared: object, each: Each = ()) -> list[ResultT]:
        """Return what the lazy calls yield, see :meth:`lazily`."""
        return list(dask.compute(*self.lazily(function, *shared, each=each)))

    def made(self, function: Callable[..., Samples], *shared: object, each: Each = ()) -> "Partitions":
        """Return the samples that lazy calls make, see :meth:`lazily`; they stay where the blocks are."""
        return partitions_of(self.lazily(function, *shared, each=each), persist=self.persist)

    def lazily(self, function: Callable[..., object], *shared: object, each: Each = ()) -> list[Delayed]:
        """Return lazy calls of ``function(block, *shared, *each[p])`` for each block p, evaluated where the block is.

        ``function`` must be at the top level of a module. The shared arguments are sent once to every worker.
        """
        call = dask.delayed(_evaluate, pure=False)
        common = [dask.delayed(value, traverse=False) for value in shared]
        own = each or [()] * len(self.blocks)
        return [call(function, block, *common, *values) for block, values in zip(self.blocks, own, strict=True)]

    def take(self, rows: Array) -> Samples:
        """Bring a few samples here: those at sorted rows (M,), counted over all partitions."""
        ends = np.cumsum(self.sizes)
        parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
        each = [(part - start,) for part, start in zip(parts, ends - self.sizes, strict=True)]
        return joined(self.map(Samples.at, each=each))


def partitions_of(blocks: Sequence[Delayed], *, persist: bool) -> Partitions:
    """Return partitions of lazy blocks, without empty ones. Errors in any of them are raised here."""
    if persist:
        with warnings.catch_warnings():  # an array of the caller has to travel once
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            blocks = dask.persist(*blocks)
    sizes = np.array(dask.compute(*[dask.delayed(len, pure=False)(block) for block in blocks]))
    return Partitions([blocks[p] for p in np.flatnonzero(sizes).tolist()], sizes[sizes > 0], persist)


def joined(pieces: Sequence[Samples]) -> Samples:
    """Return the samples of several pieces together, their codes in memory."""
    if len(pieces) == 1:
        return pieces[0]
    codes, targets = (np.concatenate(values) for values in zip(*((p.codes[:], p.targets) for p in pieces), strict=True))
    weights = np.concatenate([piece.filled_weights for piece in pieces])
    groups = None if pieces[0].groups is None else np.concatenate([piece.groups for piece in pieces])
    return Samples(codes, targets, weights, groups)


def digest(block: Samples) -> bytes:
    """Return the SHA-256 of a block."""
    return bytes.fromhex(digest_of([block.codes, block.targets, block.weights, block.groups]))


@cache
def _reuse_memory() -> None:
    """Let this process reuse freed arrays of up to 32 MB, as any process does without Dask.

    By a setting of Dask's, the GNU library maps each array above 128 KB anew, which more than doubles the time of work.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        with suppress(AttributeError, TypeError):  # another library
            for option, size in ((-3, 2**25), (-1, 2**26)):  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD
                ctypes.CDLL(None).mallopt(option, size)


def _evaluate(function: Callable[..., ResultT], block: Samples, *arguments: object) -> ResultT:
    _reuse_memory()
    with single_blas_thread(matrix_size(block.codes)):
        return function(block, *arguments)


def in_blocks(X: DaskArrayLike, least: int = 10_000) -> da.Array:
    """Return X as a Dask array that is cut along its first axis only; refuse unknown sizes and arrays of no samples."""
    if not isinstance(X, da.Array):
        X = np.asanyarray(X)  # a masked array stays one, because encode judges it
        rows = -1 if X.dtype == object or X.size == 0 or X.ndim == 0 else max(least, -(-len(X) // MOST_BLOCKS))
        X = da.from_array(X, chunks=(rows, *[-1] * (X.ndim - 1)) if X.ndim else -1, name=False)  # without a hash of X
    require_known(X, "X")
    if X.ndim == 0 or len(X) == 0:
        raise ValueError(f"Found array with 0 sample(s) (X has shape {X.shape}) while a minimum of 1 is required")
    return X.rechunk(dict.fromkeys(range(1, X.ndim), -1))


def require_same_versions() -> None:
    """Raise RuntimeError if a worker of the Client that computes has another version of one of the packages SAME."""
    client: Any = getattr(dask.base.get_scheduler(), "__self__", None)  # other schedulers are functions
    for name in SAME if client is not None else ():
        own = next((one.version for one in distributions(name=name)), "(not installed)")
        for worker, answer in client.run(version, name, on_error="return").items():
            other = "(not installed)" if isinstance(answer, PackageNotFoundError) else answer
            if other != own and not isinstance(other, OSError):  # a worker that is lost answers with an OSError
                raise RuntimeError(
                    f"worker {worker} has {name} {other}, but this process has {name} {own}, so that results could "
                    "differ: install the same version on all machines, and restart the workers"
                )


def require_known(values: da.Array, name: str) -> None:
    """Raise ValueError if the sizes of the chunks of a Dask array are unknown, as after a filter."""
    if any(size != size for size in values.shape):
        raise ValueError(f"{name} has partitions of unknown size: call {name}.compute_chunk_sizes() first")


def collected(values: object) -> Any:
    """Bring a collection of Dask into this process; anything else stays as it is."""
    return dask.compute(values, traverse=False)[0]
