"""Steps for MOABB's YAML files, which hold plain values only: functions that return an estimator for such values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.preprocessing import FunctionTransformer

from rplvq import Product, RiemannianLVQ, TangentSpace
from rplvq.features import augmented_covariances, filter_bank_covariances

__all__ = ["augmented_step", "filter_bank_classifier", "filter_bank_step"]


def augmented_step(**options: Any) -> FunctionTransformer:
    """Return a transformer of trials by :func:`rplvq.features.augmented_covariances` with these options."""
    return FunctionTransformer(augmented_covariances, kw_args=options)


def filter_bank_step(*, sfreq: float, bands: Sequence[Sequence[float]], **options: Any) -> FunctionTransformer:
    """Return a transformer of trials by :func:`rplvq.features.filter_bank_covariances` with these options."""
    return FunctionTransformer(filter_bank_covariances, kw_args={"sfreq": sfreq, "bands": bands} | options)


def filter_bank_classifier(*, n_bands: int, **parameters: Any) -> RiemannianLVQ:
    """Return the classifier of a filter bank, which learns the relevance of each band together with the prototypes."""
    return RiemannianLVQ(Product([TangentSpace()] * n_bands, relevances="learned"), **parameters)
