"""A published demand model's folder → quantiles of what follows, by onnxruntime alone: what the controller loads.

The folder holds ``card.json`` (written last) and one ``quantile-<nnn>.onnx`` a quantile. Nothing is used before its
hash agrees with the card. XGBoost is not needed. The answers are logarithms of demand ÷ level; what the level and the
features are is the business of ``forecast.lag_features``.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leadtime.domain.errors import BadTrace, DependencyFailed
from leadtime.sources.onnx_session import open_session

CARD = "card.json"
CARD_SCHEMA = "leadtime.demand-model/1"
INPUT = "x"
CHUNK_ROWS = 65_536
CURE = "train and publish the demand model again, or name another model folder"


def onnx_name(quantile: float) -> str:
    """The file of one quantile's booster, such as quantile-050.onnx."""
    return f"quantile-{round(quantile * 100):03d}.onnx"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxQuantiles:
    """A ``forecast.lag_trees.Reader`` of one folder. For one thread at a time; pickles with its files' bytes."""

    features: tuple[str, ...]
    quantiles: tuple[float, ...]
    content: tuple[bytes, ...] = field(repr=False)
    threads: int = 1
    _sessions: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sessions", tuple(onnx_session(one, self.threads) for one in self.content))

    def __reduce__(self) -> tuple[Any, ...]:
        """Sessions are made anew where it is unpickled."""
        return _again, (self.features, self.quantiles, self.content, self.threads)

    def __call__(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Features (n, len(self.features)), NaN unknown → (n, len(self.quantiles)) logarithms of demand ÷ level."""
        said = np.empty((len(features), len(self._sessions)))
        for j, session in enumerate(self._sessions):
            for at in range(0, len(features), CHUNK_ROWS):
                said[at : at + CHUNK_ROWS, j] = session.run(None, {INPUT: features[at : at + CHUNK_ROWS]})[0][:, 0]
        return said


def _again(features: tuple[str, ...], quantiles: tuple[float, ...], content: tuple[bytes, ...], threads: int) -> Any:
    return OnnxQuantiles(features=features, quantiles=quantiles, content=content, threads=threads)


def load_demand_model(folder: Path, features: Sequence[str], *, threads: int = 1) -> OnnxQuantiles:
    """Check the card and every file it names, and load the model.

    ``features``: what this version computes, in order; ``threads``: of onnxruntime. Raises BadTrace naming what is
    wrong (no card, another schema or other features, a file missing, changed or unreadable), DependencyFailed when
    onnxruntime is not installed.
    """
    card, doing = read_card(folder), doing_of(folder)
    try:
        quantiles = tuple(float(q) for q in card["quantiles"])
        digests = [str(card["files"][onnx_name(q)]) for q in quantiles]
        published = tuple(card["features"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadTrace("demand-model-broken", doing, f"the card lacks {error}", CURE) from None
    if published != tuple(features):
        odd = sorted(set(published) ^ set(features))
        wrong = f"it was made for other features ({', '.join(odd[:3]) or 'in another order'})"
        raise BadTrace("demand-model-other", doing, wrong, CURE)
    content = tuple(checked(folder, onnx_name(q), d) for q, d in zip(quantiles, digests, strict=True))
    try:
        return OnnxQuantiles(features=published, quantiles=quantiles, content=content, threads=threads)
    except ValueError as error:
        raise BadTrace("demand-model-broken", doing, str(error), CURE) from None


def read_card(folder: Path, wanted: str = CARD_SCHEMA) -> Mapping[str, Any]:
    """The card of a published demand model. Raises BadTrace where there is none, or one of another schema than
    ``wanted``."""
    doing = doing_of(folder)
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise BadTrace("demand-model-absent", doing, f"there is no {CARD}: nothing was published here", CURE) from None
    except (OSError, ValueError) as error:
        raise BadTrace("demand-model-broken", doing, f"{CARD} cannot be read ({error})", CURE) from None
    schema = card.get("schema") if isinstance(card, dict) else None
    if schema != wanted:
        raise BadTrace("demand-model-other", doing, f"its card has schema {schema!r}, not {wanted!r}", CURE)
    return card  # type: ignore[no-any-return] # it is a dict with this schema


def checked(folder: Path, name: str, digest: str) -> bytes:
    """The content of a file that the card names. Raises BadTrace unless its SHA-256 is ``digest``."""
    try:
        content = (folder / name).read_bytes()
    except OSError:
        wrong = f"{name} is missing, and its card names it"
        raise BadTrace("demand-model-changed", doing_of(folder), wrong, CURE) from None
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        wrong = f"{name} is not the file its card describes (SHA-256 {found[:12]}, card {digest[:12]})"
        raise BadTrace("demand-model-changed", doing_of(folder), wrong, CURE)
    return content


def doing_of(folder: Path) -> str:
    """What was being done, for an error's first part."""
    return f"loading the demand model in {folder}"


def onnx_session(content: bytes, threads: int) -> Any:
    """An onnxruntime session. Raises ValueError where onnxruntime cannot read ``content``, DependencyFailed when it is
    not installed."""
    try:
        return open_session(content, threads)
    except ImportError:
        raise DependencyFailed(
            "extra-not-installed", "loading a demand model", "onnxruntime is not installed",
            "install it with: pip install 'leadtime[forecast]'",
        ) from None  # fmt: skip
