"""Steps for MOABB's YAML files, which hold plain values only: functions that return an estimator for such values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rplvq import Product, RiemannianLVQ, TangentSpace
from rplvq.features import AugmentedCovariances, FilterBankCovariances

__all__ = ["augmented_step", "filter_bank_classifier", "filter_bank_step"]


def augmented_step(**options: Any) -> AugmentedCovariances:
    """Return the transformer of trials to augmented covariances with these options."""
    return AugmentedCovariances(**options)


def filter_bank_step(*, sfreq: float, bands: Sequence[Sequence[float]], **options: Any) -> FilterBankCovariances:
    """Return the transformer of trials to covariances per band with these options."""
    return FilterBankCovariances(sfreq, [(low, high) for low, high in bands], **options)


def filter_bank_classifier(*, n_bands: int, **parameters: Any) -> RiemannianLVQ:
    """Return the classifier of a filter bank, which learns the relevance of each band together with the prototypes."""
    return RiemannianLVQ(Product([TangentSpace()] * n_bands, relevances="learned"), **parameters)
