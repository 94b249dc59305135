"""Windows → logarithms of demand ÷ level: two bidirectional LSTM layers and a dense one, in JAX.

Weights are laid out as ONNX's LSTM operator wants them (directions, gates in the order i, o, f, c), so that exporting
is copying. A network starts with a dense layer of zeros: it then says 0, which is the naive forecast.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from leadtime.forecast.model import FloatColumn
from leadtime.forecast.sequence_model import CHANNELS, HEADS_MIN

GATES = 4
FORGET = 2  # in the order i, o, f, c
QUANTILES = (0.05, 0.5, 0.95)


class Layer(NamedTuple):
    """``w`` (2, 4·units, inputs), ``r`` (2, 4·units, units), ``b`` (2, 4·units): forward, then backward."""

    w: Any
    r: Any
    b: Any


class Network(NamedTuple):
    """All weights, of NumPy or of JAX; ``w`` (2·units, heads · quantiles) and ``b`` are the dense layer."""

    first: Layer
    second: Layer
    w: Any
    b: Any


def untrained(units: tuple[int, int], seed: int) -> Network:
    """Small weights drawn by ``seed``, forget gates open, a dense layer of zeros."""
    draw = np.random.default_rng(seed)
    outputs = len(HEADS_MIN) * len(QUANTILES)
    return Network(
        first=_layer(draw, len(CHANNELS), units[0]), second=_layer(draw, 2 * units[0], units[1]),
        w=np.zeros((2 * units[1], outputs), np.float32), b=np.zeros(outputs, np.float32),
    )  # fmt: skip


def _layer(draw: np.random.Generator, inputs: int, units: int) -> Layer:
    """Weights uniform within ± 1/√units, as is usual for recurrent layers."""
    most = units**-0.5
    w, r = (draw.uniform(-most, most, (2, GATES * units, n)).astype(np.float32) for n in (inputs, units))
    b = np.zeros((2, GATES * units), np.float32)
    b[:, FORGET * units : (FORGET + 1) * units] = 1.0
    return Layer(w=w, r=r, b=b)


def rescaled(network: Network, level: float, heads: FloatColumn) -> Network:
    """The network that says of raw windows what ``network`` says of those whose level was divided by ``level``, with
    each head multiplied by its element of ``heads``."""
    w = np.array(network.first.w)
    w[:, :, CHANNELS.index("level")] /= level
    by = np.repeat(heads.astype(np.float32), len(QUANTILES))
    return Network(
        first=Layer(w=w, r=np.asarray(network.first.r), b=np.asarray(network.first.b)),
        second=Layer(*(np.asarray(part) for part in network.second)),
        w=np.asarray(network.w) * by,
        b=np.asarray(network.b) * by,
    )


def forward(network: Network, x: Any) -> Any:
    """(n, minutes, channels) → (n, len(HEADS_MIN), len(QUANTILES))."""
    hidden, _ = _both_ways(network.first, jnp.swapaxes(x, 0, 1))
    _, ends = _both_ways(network.second, hidden)
    return (ends @ network.w + network.b).reshape(len(x), len(HEADS_MIN), len(QUANTILES))


def _both_ways(layer: Layer, x: Any) -> tuple[Any, Any]:
    """(minutes, n, inputs) → each minute's state and the state at the end, both directions side by side.

    The backward direction ends at the first minute.
    """
    ahead, back = (x @ layer.w[d].T + layer.b[d] for d in (0, 1))
    r = (layer.r[0].T, layer.r[1].T)
    nothing = jnp.zeros((x.shape[1], r[0].shape[0]), x.dtype)

    def step(carry: Any, gates: Any) -> tuple[Any, Any]:
        moved = tuple(_cell(state, gate, weights) for state, gate, weights in zip(carry, gates, r, strict=True))
        return moved, (moved[0][0], moved[1][0])

    start = ((nothing, nothing), (nothing, nothing))
    ends, (forth, reverse) = lax.scan(step, start, (ahead, back[::-1]))
    return jnp.concatenate((forth, reverse[::-1]), axis=2), jnp.concatenate((ends[0][0], ends[1][0]), axis=1)


def _cell(state: Any, gates: Any, r: Any) -> Any:
    """One minute of one direction: the equations of ONNX's LSTM without peepholes."""
    hidden, cell = state
    i, o, f, c = jnp.split(gates + hidden @ r, GATES, axis=1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(c)
    return jax.nn.sigmoid(o) * jnp.tanh(cell), cell
