"""Numbers as the controller's Go arithmetic makes them: integers of fixed width, divisions toward zero.

Ordinary loads never reach these edges; wrong ones do (a metric in bytes instead of requests), and then the HPA does
what these functions do. Checked against the original on amd64.
"""

import math

MAX_INT32 = 2**31 - 1
MIN_INT32 = -(2**31)
MAX_INT64 = 2**63 - 1


def wrapped_int32(value: int) -> int:
    """``value`` kept in 32 bits, as an int32 sum that overflows."""
    return ((value + 2**31) & 0xFFFFFFFF) - 2**31


def wrapped_int64(value: int) -> int:
    """``value`` kept in 64 bits, as an int64 sum or product that overflows."""
    return ((value + 2**63) & 0xFFFFFFFFFFFFFFFF) - 2**63


def divided_toward_zero(dividend: int, divisor: int) -> int:
    """Integer division as Go does it: -7 / 2 is -3, where Python's // gives -4."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def divided(dividend: float, divisor: float) -> float:
    """Float division by IEEE 754: by zero it gives ±Inf or NaN instead of an exception. ``divisor`` is never -0.0."""
    if divisor:
        return dividend / divisor
    return math.copysign(math.inf, dividend) if dividend else math.nan


def truncated_int32(value: float) -> int:
    """A float converted to int32: cut toward zero; what does not fit (NaN too) becomes the smallest int32."""
    if MIN_INT32 - 1 < value < MAX_INT32 + 1:
        return int(value)
    return MIN_INT32


def ceiled_int32(value: float) -> int:
    """The ceiling of ``value`` as int32; what does not fit becomes the smallest int32, not the largest."""
    if MIN_INT32 - 1 < value <= MAX_INT32:
        return math.ceil(value)
    return MIN_INT32
