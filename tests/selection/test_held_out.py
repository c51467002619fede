"""HeldOut: the list of candidates that fit may try, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from rplvq import Constant, HeldOut, RiemannianLVQ

NAMES = r"\['auto', 'half_median', 'discriminant', 'untrained'\]"


def test_candidates_are_a_parameter():
    model = RiemannianLVQ(sigma2=HeldOut())
    assert model.set_params(sigma2__candidates=[0.1, 0.2]).sigma2 == HeldOut((0.1, 0.2))
    assert HeldOut() == HeldOut(["auto", "discriminant", "untrained"])
    assert hash(HeldOut([0.1, "auto"])) == hash(HeldOut((0.1, "auto")))


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], "candidates must hold a value of sigma2, a schedule, or a rule for it, got"),
        (["untrained", "untrained"], "candidates must hold a value of sigma2"),
        (["discriminant", "untrained"], "candidates must hold a value of sigma2"),
        ("auto", "candidates must be a sequence, got 'auto'"),
        (3, "candidates must be a sequence, got 3"),
        ({0.1, 0.2}, "candidates must be a sequence, got {0."),
        (None, "candidates must be a sequence, got None"),
        *[
            ([name], rf"candidates\[0\] must be .* got '{name}'; names are {NAMES}")
            for name in ("median", "blended", "grid", "gentle", "annealed", "heldout")
        ],
        ([0.1, 0.0], r"candidates\[1\] must be positive and finite, got 0.0; names are"),
        ([0.1, np.nan], r"candidates\[1\] must be positive and finite, got nan"),
        ([0.1, True], r"candidates\[1\] must be a positive number, a Schedule, .* got True"),
        (["auto", [0.1]], r"candidates\[1\] must be .* got \[0.1\]"),
        ([Constant], r"candidates\[0\] must be .* got <class"),
    ],
)
def test_bad_candidates_are_refused_by_their_place_and_value(candidates, message):
    with pytest.raises(ValueError, match=message):
        HeldOut(candidates)
