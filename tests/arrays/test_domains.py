"""Domains of samples, given by groups or in labels."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq.arrays import split_domains


def test_labels_hold_their_domains_before_the_last_slash():
    labels, domains = split_domains(np.array(["s1/left", "s1/right", "day/2/left"]))
    assert_array_equal(labels, ["left", "right", "left"])
    assert_array_equal(domains, ["s1", "s1", "day/2"])


def test_given_groups_leave_labels_as_they_are():
    labels, domains = split_domains(["a/b", "c"], groups=[3, 1])
    assert_array_equal(labels, ["a/b", "c"])
    assert_array_equal(domains, [3, 1])


def test_the_encoder_of_pyriemann_is_reversed():
    transfer = pytest.importorskip("pyriemann.transfer")
    y, groups = np.array(["left", "right", "left"]), np.array(["s1", "s2", "s2"])
    labels, domains = split_domains(transfer.encode_domains(np.empty((3, 2, 2)), y, groups)[1])
    assert_array_equal(labels, y)
    assert_array_equal(domains, groups)


@pytest.mark.parametrize(
    ("y", "groups", "match"),
    [
        ([0, 1], None, "y of dtype int64 and shape"),
        ([], None, "groups is None"),
        (["s1/left", "right"], None, r"y\[1\] is 'right'"),
        (["s1/left", "s1/"], None, r"y\[1\] is 's1/'"),
        (["s1/left", None], None, r"y\[1\] is None"),
        (["left", "right"], ["s1"], r"groups must have shape \(2,\)"),
        (["left", "right"], ["s1", None], r"groups\[1\] is None"),
        (["left", "right"], ["s1", 2], "mixed types"),
    ],
)
def test_what_names_no_domain_is_an_error(y, groups, match):
    with pytest.raises(ValueError, match=match):
        split_domains(y, groups)
