"""A published model's folder → probabilities of failure, by onnxruntime alone: what replay and the live loop load.

The folder holds ``card.json`` (written last), one ``model-<m>.onnx`` a horizon and ``calibration.json``. Nothing is
used before its hash agrees with the card. Neither XGBoost nor scikit-learn is needed.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.domain.risk import RiskDriver
from leadtime.sources.onnx_session import open_session

CARD = "card.json"
CARD_SCHEMA = "leadtime.risk-model/1"
CALIBRATION = "calibration.json"
INPUT, OUTPUT = "x", "probabilities"
SMALLEST = 1e-12
CHUNK_ROWS = 65_536
Array = np.ndarray[Any, np.dtype[Any]]
_CURE = "publish it again with 'leadtime borg train', or name another model folder"


def onnx_name(horizon_min: int) -> str:
    """The file of one horizon's model."""
    return f"model-{horizon_min}.onnx"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxRiskModel:
    """A ``domain.risk.RiskModel`` of one folder. Pure once loaded; usable from one thread at a time."""

    name: str
    features: tuple[str, ...]
    base_rates: Mapping[int, float]
    card: Mapping[str, Any]
    reference: tuple[float, ...]  # each feature's median in the training rows, NaN where it was mostly missing
    _sessions: Mapping[int, Any] = field(repr=False)
    _maps: Mapping[int, Mapping[str, Any]] = field(repr=False)

    @property
    def horizons_min(self) -> tuple[int, ...]:
        """Horizons (minutes), rising."""
        return tuple(sorted(self._sessions))

    def probabilities(self, rows: Sequence[Sequence[float]]) -> Mapping[int, Sequence[float]]:
        """Rows [n, features] (NaN = missing) → horizon (minutes) → n probabilities, never falling with the horizon.

        Raises BadTrace when a row has not one value a feature.
        """
        given = self.scores(np.asarray(rows, dtype=np.float32).reshape(len(rows), -1))
        return {horizon: [float(p) for p in column] for horizon, column in given.items()}

    def scores(self, x: Array) -> dict[int, Array]:
        """The same on a float32 matrix [n, features], as float64 arrays [n]; n may be in the millions."""
        highest = np.zeros(len(x))
        out: dict[int, Array] = {}
        for horizon in self.horizons_min:
            highest = np.maximum(highest, calibrated(self._maps[horizon], self.raw(x, horizon)))
            out[horizon] = highest
        return out

    def raw(self, x: Array, horizon_min: int) -> Array:
        """One horizon's probabilities [n] before calibration."""
        if x.ndim != 2 or (len(x) and x.shape[1] != len(self.features)):
            raise BadTrace(
                "risk-rows-shape", f"scoring with {self.name}", f"rows hold {x.shape[-1]} values",
                f"hand in the {len(self.features)} features of the card, in its order",
            )  # fmt: skip
        session = self._sessions[horizon_min]
        parts = [
            session.run([OUTPUT], {INPUT: x[at : at + CHUNK_ROWS]})[0][:, 1] for at in range(0, len(x), CHUNK_ROWS)
        ]
        return np.concatenate(parts).astype(np.float64) if parts else np.zeros(0)

    def drivers(self, row: Sequence[float], horizon_min: int, *, most: int = 3) -> tuple[RiskDriver, ...]:
        """Up to ``most`` features that move this row's score, largest effect first.

        Occlusion: how far the log-odds before calibration fall when this one feature is put at its training median
        (``reference``). Effects are taken one at a time, so they need not add up where features act together. Costs as
        much as scoring one row a feature.
        """
        own = np.asarray(row, dtype=np.float32)
        reference = np.asarray(self.reference, dtype=np.float32)
        tried = np.tile(own, (len(own) + 1, 1))
        tried[np.arange(1, len(own) + 1), np.arange(len(own))] = reference
        log_odds = _logit(self.raw(tried, horizon_min))
        effects = log_odds[0] - log_odds[1:]
        order = [int(j) for j in np.argsort(-np.abs(effects), kind="stable")[:most] if effects[j] != 0.0]
        return tuple(
            RiskDriver(
                feature=self.features[j], value=None if np.isnan(own[j]) else float(own[j]), effect=float(effects[j])
            )
            for j in order
        )


def load_risk_model(folder: Path, *, threads: int = 1) -> OnnxRiskModel:
    """Check the card and every file it names, and load the model.

    ``threads``: of onnxruntime; 1 is fastest for few rows. Raises BadTrace naming what is wrong (no card, another
    schema, a file missing or changed), DependencyFailed when onnxruntime is not installed.
    """
    card = read_card(folder)
    content = {name: _checked(folder, name, str(digest)) for name, digest in card["files"].items()}
    try:
        horizons = [int(m) for m in card["horizons_min"]]
        maps = {int(m): value for m, value in json.loads(content[CALIBRATION])["horizons"].items()}
        name = f"{card['name']}@{str(card['data_hash'])[:12]}"
        reference = tuple(float("nan") if v is None else float(v) for v in card["reference"])
        return OnnxRiskModel(
            name=name, features=tuple(card["features"]), reference=reference, card=card,
            base_rates={m: float(card["base_rates"][str(m)]) for m in horizons},
            _sessions={m: _session(folder, content[onnx_name(m)], threads) for m in horizons},
            _maps={m: maps[m] for m in horizons},
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise BadTrace("risk-card-broken", f"loading the model in {folder}", f"the card lacks {error}", _CURE) from None


def read_card(folder: Path) -> Mapping[str, Any]:
    """The card of a published model. Raises BadTrace where there is none, or one of another schema."""
    doing = f"loading the model in {folder}"
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise BadTrace("risk-model-absent", doing, f"there is no {CARD}: no model was published here", _CURE) from None
    except (OSError, ValueError) as error:
        raise BadTrace("risk-card-broken", doing, f"{CARD} cannot be read ({error})", _CURE) from None
    schema = card.get("schema") if isinstance(card, dict) else None
    if schema != CARD_SCHEMA:
        raise BadTrace("risk-card-schema", doing, f"its card has schema {schema!r}, not {CARD_SCHEMA!r}", _CURE)
    if not isinstance(card.get("files"), dict):
        raise BadTrace("risk-card-broken", doing, "the card lacks 'files'", _CURE)
    return card  # type: ignore[no-any-return] # it is a dict with this schema


def calibrated(written: Mapping[str, Any], p: Array) -> Array:
    """Probabilities [n] through a map as calibration.json has it (the forms of ``risk.calibration``), in log-odds."""
    given = np.clip(np.asarray(p, dtype=np.float64), SMALLEST, 1 - SMALLEST)
    kind = written["kind"]
    if kind == "identity":
        return given
    if kind == "isotonic":
        at, knots, to = _logit(given), np.asarray(written["knots_from"]), np.asarray(written["knots_to"])
        inside = np.interp(at, knots, to)
        return _expit(inside + np.minimum(at - knots[0], 0.0) + np.maximum(at - knots[-1], 0.0))
    if kind == "platt":
        return _expit(written["intercept"] + written["slope"] * _logit(given))
    if kind == "beta":
        below = written["slope_below"] * np.log1p(-given)
        return _expit(written["intercept"] + written["slope"] * np.log(given) - below)
    raise ValueError(f"no calibration is called {kind!r}")


def _logit(p: Array) -> Array:
    clipped = np.clip(np.asarray(p, dtype=np.float64), SMALLEST, 1 - SMALLEST)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def _expit(log_odds: Array) -> Array:
    small = np.exp(-np.abs(log_odds))
    return np.where(log_odds >= 0, 1 / (1 + small), small / (1 + small))


def _checked(folder: Path, name: str, digest: str) -> bytes:
    doing = f"loading the model in {folder}"
    try:
        content = (folder / Path(name).name).read_bytes()
    except OSError:
        raise BadTrace("risk-file-absent", doing, f"{name} is missing, and its card names it", _CURE) from None
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        wrong = f"{name} is not the file its card describes (SHA-256 {found[:12]}, card {digest[:12]})"
        raise BadTrace("risk-file-changed", doing, wrong, _CURE)
    return content


def _session(folder: Path, content: bytes, threads: int) -> Any:
    doing = f"loading the model in {folder}"
    try:
        return open_session(content, threads)
    except ImportError:
        raise DependencyFailed(
            "extra-not-installed",
            doing,
            "onnxruntime is not installed",
            "install it with: pip install 'leadtime[risk]'",
        ) from None
    except ValueError as error:
        raise BadTrace("risk-model-unloadable", doing, str(error), _CURE) from None
