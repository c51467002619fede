"""Training on data that no machine holds, by Dask (extra ``dask``): :class:`DistributedLVQ`."""

from rplvq.distributed.estimator import DistributedLVQ
from rplvq.distributed.initial import distributed_mean

__all__ = ["DistributedLVQ", "distributed_mean"]
