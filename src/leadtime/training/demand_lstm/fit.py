"""Windows → a fitted network, stopped where the newest part of the time no longer gains, the same every time.

Pinball loss of three quantiles at every head, each head in units of how much the demand moves until then. The weights
kept are those that were best on the watched part; where none beat those at the start, these stay: the naive forecast.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import cos, pi
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped] # it ships no types

from leadtime.forecast.model import FloatColumn
from leadtime.forecast.sequence_model import CHANNELS, Windows
from leadtime.training.demand_lstm.network import QUANTILES, Network, forward, rescaled, untrained
from leadtime.training.demand_lstm.samples import WindowSamples
from leadtime.training.demand_lstm.settings import LstmSettings

LEAST_SCALE = 1e-3  # demand that moves by less than a thousandth is not magnified to noise
MOST_SCALED = 10.0
ASKED_AT_ONCE = 512


class BudgetSpent(Exception):
    """The time was up before one epoch was over."""


def fit(
    samples: WindowSamples, settings: LstmSettings, *, seed: int, budget_s: float,
    note: Callable[[float], None] = lambda _share: None,
) -> Network:  # fmt: skip
    """Fit a network. At the end of ``budget_s`` it keeps the best of the finished epochs; within the budget equal
    samples, settings and seed give equal weights on one machine. ``note`` may raise to stop.

    Raises BudgetSpent, and ValueError where a part of the split has no window.
    """
    until = perf_counter() + budget_s
    older, watched = samples.split()
    if not len(older.x) or not len(watched.x):
        raise ValueError(f"{len(older.x)} windows to fit on and {len(watched.x)} to watch; one of each is needed")
    level, heads = _scales(older)
    fitted_on, watch = (_scaled(part, level, heads) for part in (older, watched))
    best = network = untrained(settings.units, seed)
    least, waited = _watched_loss(network, *watch), 0
    state = _optimizer(settings).init(network)
    draw = np.random.default_rng(seed)
    for epoch in range(settings.epochs):
        batches = list(_batches(len(older.x), settings.batch, draw))
        for done, index in enumerate(batches):
            if perf_counter() > until:
                if not epoch:
                    raise BudgetSpent
                return rescaled(best, level, heads)
            share = (epoch + done / len(batches)) / settings.epochs
            note(share)
            rate = _rate(settings, share)
            batch = (fitted_on[0][index], fitted_on[1][index])
            network, state = _step(settings, network, state, batch, rate)
        loss = _watched_loss(network, *watch)
        waited = 0 if loss < least else waited + 1
        if loss < least:
            best, least = network, loss
        if waited >= settings.patience:
            break
    return rescaled(best, level, heads)


def said(network: Network, windows: Windows) -> FloatColumn:
    """What JAX makes of ``windows`` with ``network``: the yardstick of the exported files."""
    parts = [np.asarray(_forward(network, chunk))[:n] for chunk, n in _chunks(windows)]
    return np.concatenate(parts).astype(np.float64)


def _scales(older: WindowSamples) -> tuple[float, FloatColumn]:
    """How far the window's minutes lie from the level, and how far the demand at each head moves from it."""
    level = float(np.std(older.x[:, :, CHANNELS.index("level")]))
    known = np.where(np.isnan(older.y), 0.0, np.abs(older.y)).sum(axis=0)
    heads = known / np.maximum((~np.isnan(older.y)).sum(axis=0), 1)
    return max(level, LEAST_SCALE), np.maximum(heads, LEAST_SCALE)


def _scaled(part: WindowSamples, level: float, heads: FloatColumn) -> tuple[Windows, Any]:
    x = part.x.copy()
    x[:, :, CHANNELS.index("level")] /= level
    return x, np.clip(part.y / heads, -MOST_SCALED, MOST_SCALED).astype(np.float32)


def _optimizer(settings: LstmSettings) -> Any:
    """AdamW with clipped gradients, but for the rate, which changes with every step."""
    return optax.chain(
        optax.clip_by_global_norm(settings.clip_norm), optax.scale_by_adam(),
        optax.add_decayed_weights(settings.weight_decay),
    )  # fmt: skip


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def _step(settings: LstmSettings, network: Network, state: Any, batch: Any, rate: float) -> tuple[Network, Any]:
    """One step down the gradient; compiled once for equal settings."""
    gradient = jax.grad(_mean_loss)(network, *batch)
    moved, state = _optimizer(settings).update(gradient, state, network)
    return jax.tree.map(lambda weight, by: weight - rate * by, network, moved), state


def _rate(settings: LstmSettings, done: float) -> float:
    """The rate falls to zero by half a cosine; ``done``: share of the epochs."""
    return settings.learning_rate * 0.5 * (1.0 + cos(pi * done))


def _mean_loss(network: Network, x: Any, y: Any) -> Any:
    total, count = _loss(network, x, y)
    return total / jnp.maximum(count, 1)


def _loss(network: Network, x: Any, y: Any) -> tuple[Any, Any]:
    """Sum of the pinball losses at the known heads, and how many those are."""
    known = ~jnp.isnan(y)
    off = jnp.where(known, y, 0.0)[:, :, None] - forward(network, x)
    levels = jnp.array(QUANTILES)
    pinball = jnp.maximum(levels * off, (levels - 1.0) * off).sum(axis=2)
    return jnp.where(known, pinball, 0.0).sum(), known.sum()


_counted_loss = jax.jit(_loss)
_forward = jax.jit(forward)


def _watched_loss(network: Network, x: Windows, y: Any) -> float:
    totals = [
        _counted_loss(network, chunk, _padded(y[at * ASKED_AT_ONCE : at * ASKED_AT_ONCE + n]))
        for at, (chunk, n) in enumerate(_chunks(x))
    ]
    return float(sum(float(total) for total, _ in totals) / max(1, sum(int(count) for _, count in totals)))


def _chunks(windows: Windows) -> Iterator[tuple[Windows, int]]:
    """Parts of one size, so that they are compiled once, and how many of each are real."""
    for at in range(0, len(windows), ASKED_AT_ONCE):
        part = windows[at : at + ASKED_AT_ONCE]
        yield np.concatenate((part, np.zeros((ASKED_AT_ONCE - len(part), *part.shape[1:]), part.dtype))), len(part)


def _padded(y: Any) -> Any:
    """Rows of nothing known up to ASKED_AT_ONCE."""
    return np.concatenate((y, np.full((ASKED_AT_ONCE - len(y), y.shape[1]), np.nan, y.dtype)))


def _batches(count: int, size: int, draw: np.random.Generator) -> Iterator[Any]:
    """Every row once, in a drawn order; the last batch is filled up with rows of the first."""
    order = draw.permutation(count)
    for at in range(0, count, size):
        yield np.take(order, np.arange(at, at + size), mode="wrap")
