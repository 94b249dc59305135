"""Windows in their one order, whatever ties and sizes of keys."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.risk.windows import ORDER, in_order

SMALL = st.integers(0, 3)
LARGE = st.sampled_from([0, 1, 2**40, 2**62, 2**63 - 1])
INDEX = st.sampled_from([0, 1, 2**31 - 1])


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL), max_size=30)
    | st.lists(st.tuples(LARGE, INDEX, LARGE, SMALL), max_size=12)
)
def test_the_order_is_that_of_sorting_by_all_four_columns_and_is_stable(rows: list[tuple[int, int, int, int]]) -> None:
    schema = {name: pl.Int32 if name == "instance_index" else pl.Int64 for name in ORDER}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("came")
    expected = frame.sort(ORDER, maintain_order=True)
    assert in_order(frame.lazy()).collect().equals(expected)
    assert in_order(frame.lazy()).collect(engine="in-memory").equals(expected)
