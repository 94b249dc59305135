"""A published demand network's folder → what it says of windows of minutes, by onnxruntime alone.

The folder holds ``card.json`` (written last) and ``network.onnx``, which is not used before its hash agrees with the
card. JAX is not needed. The answers are logarithms of demand ÷ level; what the level and the windows are is the
business of ``forecast.sequence_model``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leadtime.domain.errors import BadTrace
from leadtime.sources.demand_model import CURE, checked, doing_of, onnx_session, read_card

NETWORK = "network.onnx"
NETWORK_SCHEMA = "leadtime.demand-network/1"
INPUT = "x"
CHUNK_ROWS = 1024  # 60 minutes of two layers' states are 60 kB a row
LEAST_ROWS = 16  # fewer are multiplied in another order, and a row would differ in its last bits


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNetwork:
    """A ``forecast.sequence_model.WindowReader``. For one thread at a time; pickles with its file's bytes."""

    content: bytes = field(repr=False)
    threads: int = 1
    _session: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ValueError where onnxruntime cannot read it, DependencyFailed where onnxruntime is not installed."""
        object.__setattr__(self, "_session", onnx_session(self.content, self.threads))

    def __reduce__(self) -> tuple[Any, ...]:
        """The session is made anew where it is unpickled."""
        return _again, (self.content, self.threads)

    def __call__(self, windows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Windows (n, minutes, channels) → (n, heads, quantiles) logarithms of demand ÷ level."""
        rows = max(len(windows), LEAST_ROWS)
        filled = np.zeros((rows, *windows.shape[1:]), dtype=np.float32)
        filled[: len(windows)] = windows
        starts = range(0, rows, CHUNK_ROWS)
        said = [self._session.run(None, {INPUT: filled[at : at + CHUNK_ROWS]})[0] for at in starts]
        return np.concatenate(said)[: len(windows)].astype(np.float64)


def _again(content: bytes, threads: int) -> OnnxNetwork:
    return OnnxNetwork(content=content, threads=threads)


def load_demand_network(
    folder: Path, channels: Sequence[str], heads_min: Sequence[int], *, threads: int = 1
) -> OnnxNetwork:
    """Check the card and the file it names, and load the network.

    ``channels``, ``heads_min``: what this version gives and expects, in order; ``threads``: of onnxruntime. Raises
    BadTrace naming what is wrong (no card, another schema, other channels or heads, the file missing, changed or
    unreadable), DependencyFailed when onnxruntime is not installed.
    """
    card, doing = read_card(folder, NETWORK_SCHEMA), doing_of(folder)
    try:
        published = tuple(card["channels"]), tuple(int(m) for m in card["heads_min"])
        digest = str(card["files"][NETWORK])
    except (KeyError, TypeError, ValueError) as error:
        raise BadTrace("demand-model-broken", doing, f"the card lacks {error}", CURE) from None
    if published != (tuple(channels), tuple(heads_min)):
        wrong = f"it reads {', '.join(published[0])} and answers at {published[1]} min, not as this version does"
        raise BadTrace("demand-model-other", doing, wrong, CURE)
    try:
        return OnnxNetwork(content=checked(folder, NETWORK, digest), threads=threads)
    except ValueError as error:
        raise BadTrace("demand-model-broken", doing, str(error), CURE) from None
