"""What a part offers beyond its protocol is found by the names that the capability states."""

from __future__ import annotations

import attrs
import pytest

from rplvq import (
    GLVQ,
    RSLVQ,
    AdaptiveStep,
    AffineInvariant,
    ClassKMeans,
    ClassMeans,
    EuclideanVectors,
    LogEuclidean,
    Product,
    TangentSpace,
)
from rplvq.capabilities import (
    Additive,
    AtReference,
    BoundedSlope,
    Grouped,
    OfSigma2,
    PlacesMeans,
    Probabilistic,
    Referenced,
    Scaled,
    WithPriors,
    provides,
)
from rplvq.protocols import StepRule
from rplvq.schedules import Share


class Wrapped:
    """Passes on what it wraps."""

    def __init__(self, part):
        self.part = part

    def __getattr__(self, name):
        return getattr(self.part, name)


@attrs.frozen
class NoUnit(EuclideanVectors):
    unit = None


@pytest.mark.parametrize(
    ("part", "has", "lacks"),
    [
        (AffineInvariant(), (Additive, Grouped), (Scaled, Referenced)),
        (Wrapped(AffineInvariant()), (Additive, Grouped), (Scaled, Referenced)),
        (LogEuclidean(), (Additive,), (Grouped, Scaled)),
        (EuclideanVectors(), (Additive, Scaled), (Grouped,)),
        (NoUnit(), (Additive,), (Scaled,)),
        (TangentSpace(), (Referenced, AtReference), (Grouped,)),  # whose reference is None
        (Product([LogEuclidean(), TangentSpace()]), (Additive, Referenced), (Scaled,)),
        (Product([LogEuclidean()], relevances="learned"), (), (Additive, Referenced)),
        (RSLVQ(), (Probabilistic, WithPriors, BoundedSlope), (OfSigma2,)),  # whose priors are None
        (GLVQ(), (), (Probabilistic, WithPriors, BoundedSlope)),
        (ClassMeans(), (PlacesMeans,), ()),
        (ClassKMeans(), (), (PlacesMeans,)),
        (AdaptiveStep(), (StepRule,), (OfSigma2,)),
        (Share(), (OfSigma2,), (StepRule,)),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, tuple) else "",
)
def test_a_part_provides_what_has_the_names_of_its_members(part, has, lacks):
    assert all(provides(part, capability) for capability in has)
    assert not any(provides(part, capability) for capability in lacks)
