"""A PromQL text → a checked query: refused at load with the parser's own words and the place, not at three at night.

The parser (promql-parser, grammar of Prometheus 2.45) says what is wrong but not where; the place is found here: the
longest beginning that is still a query once its open brackets are closed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser

from leadtime.domain.errors import WrongUse

CLOSING = {"(": ")", "[": "]", "{": "}"}
QUOTES = "\"'`"
GUARDED = frozenset({"rate", "irate", "increase"})
COUNTER_ENDINGS = ("_total", "_bucket")  # _count and _sum are gauges' names too


class BadQuery(WrongUse):
    """A query that no server can answer; names the place and what the parser said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedQuery:
    """A query the parser accepts. ``selectors``: its series selectors without ranges and offsets, in order, each once.

    ``repeats``: it has a selector outside any range function, so the server repeats the last sample for up to its
    look-back (5 min in Prometheus) after a series ended without a staleness marker. ``raw_counters``: metrics that are
    counters by their name and are read without rate().
    """

    text: str
    selectors: tuple[str, ...]
    repeats: bool
    raw_counters: tuple[str, ...]

    def __str__(self) -> str:
        """The query as it is sent."""
        return self.text


def check_query(text: str, *, of: str = "a query") -> CheckedQuery:
    """Check one query; ``of`` says in the error whose it is. Raises BadQuery (promql-refused, promql-no-series).

    A range vector, a text or a bare number is refused too: there is no series of instants in it.
    """
    try:
        tree = promql_parser.parse(text)
    except ValueError as error:
        at = _place(text)
        raise BadQuery(
            "promql-refused", f"reading {of}", f"{error}, at character {at + 1}: {_shown(text, at)}",
            "mend the query; PromQL of Prometheus 2.45 is understood (no MetricsQL)",
        ) from None  # fmt: skip
    if isinstance(tree, promql_parser.MatrixSelector | promql_parser.SubqueryExpr | promql_parser.StringLiteral):
        raise BadQuery(
            "promql-refused", f"reading {of}", f"it gives no values at instants: {text}",
            "put a function around the range, as rate(x[1m]) or avg_over_time(x[1m])",
        )  # fmt: skip
    selectors = tuple(dict.fromkeys(_selector(each) for each, _ in _reached(tree)))
    if not selectors:
        raise BadQuery("promql-no-series", f"reading {of}", f"it reads no series: {text}", "name a metric in it")
    raw = (each.name or "" for each, inside in _reached(tree) if not inside)
    return CheckedQuery(
        text=text, selectors=selectors, repeats=any(not inside for _, inside in _reached(tree)),
        raw_counters=tuple(dict.fromkeys(name for name in raw if name.endswith(COUNTER_ENDINGS))),
    )  # fmt: skip


def guarded(text: str) -> str:
    """The query with every rate(), irate() and increase() asking for two samples in its range.

    Prometheus gives nothing where there are fewer; VictoriaMetrics takes the sample before the range too, and where the
    range holds none it says 0: a scrape gap would begin with a minute without demand. Subqueries are left alone.
    """

    def guard(node: promql_parser.Expr) -> promql_parser.Expr | None:
        if not isinstance(node, promql_parser.Call) or node.func.name not in GUARDED:
            return None
        if not isinstance(node.args[0], promql_parser.MatrixSelector):
            return None
        within = node.args[0].prettify()
        return promql_parser.parse(f"({node.prettify()} and count_over_time({within}) > 1)")

    return promql_parser.transform(promql_parser.parse(text), None, guard).prettify()


def _reached(tree: promql_parser.Expr) -> Iterator[tuple[promql_parser.VectorSelector, bool]]:
    """Every series selector, and whether it stands in a range (rate(x[1m])) or a subquery."""
    found: list[tuple[promql_parser.VectorSelector, bool]] = []
    inside = False  # a range is visited right before its own selector

    def see(node: promql_parser.Expr) -> bool:
        nonlocal inside
        if isinstance(node, promql_parser.VectorSelector):
            found.append((node, inside))
        inside = isinstance(node, promql_parser.MatrixSelector)
        return True

    promql_parser.walk(tree, see)
    yield from found


def _selector(node: promql_parser.VectorSelector) -> str:
    """``name{label="value"}`` without offset and @."""
    matchers = ",".join(str(each) for each in node.matchers.matchers)
    return f"{node.name or ''}{{{matchers}}}"


def _place(text: str) -> int:
    """Index of the first character that cannot stand where it stands (an unclosed bracket or quote: that one)."""
    openers = _open(text)
    for end in range(len(text), 0, -1):
        closers = "".join(CLOSING.get(text[i], text[i]) for i in reversed(_open(text[:end])))
        if _parses(text[:end] + closers):
            rest = len(text[:end]) + len(text[end:]) - len(text[end:].lstrip())
            return openers[-1] if rest >= len(text) and openers else min(rest, max(0, len(text) - 1))
    return 0


def _open(text: str) -> list[int]:
    """Where the brackets and the quote stand that are still open at the end of ``text``, outermost first."""
    found: list[int] = []
    quote, skip = "", False
    for i, char in enumerate(text):
        if quote:
            if skip:
                skip = False
            elif char == "\\" and quote != "`":
                skip = True
            elif char == quote:
                quote = ""
                found.pop()
        elif char in QUOTES:
            quote = char
            found.append(i)
        elif char in CLOSING:
            found.append(i)
        elif found and char == CLOSING.get(text[found[-1]]):
            found.pop()
    return found


def _parses(text: str) -> bool:
    try:
        promql_parser.parse(text)
    except ValueError:
        return False
    return True


def _shown(text: str, at: int) -> str:
    """The query with a mark at the place, cut to what is near."""
    before, after = text[max(0, at - 40) : at], text[at : at + 40]
    return f"{'…' if at > 40 else ''}{before} »{after}{'…' if len(text) > at + 40 else ''}"
