"""Go's numbers in Python."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.mechanics import hpa_arithmetic as go


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (0, 5, 0), (-1, 2, 0)]
)
def test_integer_division_goes_toward_zero(dividend: int, divisor: int, expected: int) -> None:
    assert go.divided_toward_zero(dividend, divisor) == expected


def test_sums_wrap_round() -> None:
    assert go.wrapped_int32(2**31) == -(2**31)
    assert go.wrapped_int32(-(2**31) - 1) == 2**31 - 1
    assert go.wrapped_int64(2**63) == -(2**63)


@given(st.integers(-(2**31), 2**31 - 1))
def test_what_fits_is_left_alone(value: int) -> None:
    assert go.wrapped_int32(value) == value
    assert go.truncated_int32(float(value)) == value
    assert go.ceiled_int32(float(value)) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**31, 1e300, -1e300])
def test_floats_that_do_not_fit_become_the_smallest(value: float) -> None:
    assert go.truncated_int32(value) == -(2**31)
    assert go.ceiled_int32(value) == -(2**31)


def test_the_last_floats_that_fit() -> None:
    assert go.truncated_int32(2.0**31 - 0.5) == 2**31 - 1
    assert go.ceiled_int32(2.0**31 - 1.5) == 2**31 - 1
    assert go.ceiled_int32(2.0**31 - 0.5) == -(2**31)  # its ceiling is 2^31
    assert go.ceiled_int32(-0.5) == 0


def test_division_by_zero_follows_ieee_754() -> None:
    assert go.divided(1.0, 0.0) == math.inf
    assert go.divided(-1.0, 0.0) == -math.inf
    assert math.isnan(go.divided(0.0, 0.0))
    assert go.divided(1.0, 4.0) == 0.25
