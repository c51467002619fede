"""Training on Dask arrays that no single machine holds, by the library's own steps; needs the extra ``dask``."""

from rplvq.distributed._estimator import DistributedLVQ

__all__ = ["DistributedLVQ"]
