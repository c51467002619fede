"""Training on data that no machine holds, by Dask (extra ``dask``): :class:`DistributedLVQ`."""

from rplvq.distributed._estimator import DistributedLVQ
from rplvq.distributed._initial import distributed_mean

__all__ = ["DistributedLVQ", "distributed_mean"]
