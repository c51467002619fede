"""Training on Dask arrays that no single machine holds; needs the extra ``dask``.

Nothing here decides how prototypes learn: this package only runs the library's steps and initializers on workers.
"""

from rplvq.distributed._estimator import DistributedLVQ

__all__ = ["DistributedLVQ"]
