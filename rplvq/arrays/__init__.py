"""Arrays of numbers: parts that fit into memory, the data record, checks of what users pass, and linear algebra.

Nothing here knows a metric, a cost or an estimator. A function that takes a manifold uses only the methods of
:class:`rplvq.protocols.Manifold`.
"""

from rplvq.arrays._labels import (
    accuracy,
    are_right,
    by_label,
    check_class_sizes,
    check_groups,
    check_labels,
    check_prototypes,
    check_soft_labels,
    check_weights,
    hard_targets,
    index_labels,
    number_groups,
    one_type,
    same_type,
    split_domains,
    weigh_classes,
)
from rplvq.arrays._linalg import (
    adjoint,
    congruence,
    expm,
    from_spectrum,
    hermitian_part,
    invsqrtm,
    logm,
    lower_inverse,
    matrix_size,
    positive_inverse,
    principal_basis,
    single_blas_thread,
    spectral_map,
    sqrtm,
    squared_roots,
)
from rplvq.arrays._samples import (
    BLOCK_ROWS,
    LARGE_BLOCKS,
    LazyRows,
    Samples,
    as_rows,
    block_slices,
    blocks,
    by_block,
    canonical_order,
    distances,
    distinct,
    encoded,
    evenly_spaced_rows,
    materialise,
    parts_of,
    parts_of_batch,
    reads_parts,
    repeats,
    row_slices,
    subset,
    take_rows,
    visits,
)
from rplvq.arrays._scaling import best_factor
from rplvq.arrays._transformers import MatrixTransformer, numbered_names
from rplvq.arrays._validation import (
    as_number_array,
    check_definite,
    check_hermitian,
    check_positive,
    check_positive_definite,
    first_bad,
    mixed_units,
    precision_of,
    rank_tolerance,
    require_finite,
    stacked,
    unmasked,
)

__all__ = [
    "BLOCK_ROWS", "LARGE_BLOCKS", "LazyRows", "MatrixTransformer", "Samples", "accuracy", "adjoint", "are_right",
    "as_number_array", "as_rows", "best_factor", "block_slices", "blocks", "by_block", "by_label",
    "canonical_order", "check_class_sizes", "check_definite", "check_groups", "check_hermitian", "check_labels",
    "check_positive", "check_positive_definite", "check_prototypes", "check_soft_labels", "check_weights",
    "congruence", "distances", "distinct", "encoded", "evenly_spaced_rows", "expm", "first_bad", "from_spectrum",
    "hard_targets", "hermitian_part", "index_labels", "invsqrtm", "logm", "lower_inverse", "materialise",
    "matrix_size", "mixed_units", "number_groups", "numbered_names", "one_type", "parts_of", "parts_of_batch",
    "positive_inverse", "precision_of", "principal_basis", "rank_tolerance", "reads_parts", "repeats",
    "require_finite", "row_slices", "same_type", "single_blas_thread", "spectral_map", "split_domains", "sqrtm",
    "squared_roots", "stacked", "subset", "take_rows", "unmasked", "visits", "weigh_classes",
]  # fmt: skip


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    return [
        "LazyRows", "Samples", "adjoint", "as_number_array", "blocks", "by_block", "canonical_order", "check_definite",
        "check_hermitian", "check_labels", "check_positive", "check_positive_definite", "check_weights", "congruence",
        "distances", "encoded", "expm", "first_bad", "from_spectrum", "hard_targets", "hermitian_part", "invsqrtm",
        "logm", "lower_inverse", "materialise", "matrix_size", "parts_of", "positive_inverse", "precision_of",
        "rank_tolerance", "reads_parts", "require_finite", "single_blas_thread", "spectral_map", "sqrtm",
        "squared_roots", "subset", "visits",
    ]  # fmt: skip
