"""A fitted network → a folder the controller can load, or a refusal: parity comes before the folder.

The export is our own, so the file is loaded as the controller loads it and compared with JAX on real windows.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leadtime.domain.errors import BadTrace
from leadtime.forecast.sequence_model import CHANNELS, HEADS_MIN, WINDOW_MIN, WindowReader, Windows
from leadtime.sources.demand_model import CARD
from leadtime.sources.demand_network import NETWORK, NETWORK_SCHEMA, OnnxNetwork, load_demand_network
from leadtime.training.demand.parity import Parity, parity_of
from leadtime.training.demand_lstm import fit
from leadtime.training.demand_lstm.export import export_onnx
from leadtime.training.demand_lstm.network import QUANTILES, Network
from leadtime.training.model_folder import staged, write_json

_DOING = "publishing the demand network"


def served(network: Network, windows: Windows) -> tuple[OnnxNetwork, Parity]:
    """The network as the controller will ask it, and how far it is from JAX on ``windows`` (n ≥ 1, …).

    Raises DependencyFailed where they differ by more than 1e-5 of the demand.
    """
    reader = OnnxNetwork(content=export_onnx(network))
    return reader, compare(reader, network, windows)


def compare(reader: WindowReader, network: Network, windows: Windows) -> Parity:
    """Ask ``reader`` and JAX about ``windows``. Raises BadTrace without one, DependencyFailed above 1e-5."""
    if not len(windows):
        raise BadTrace("parity-no-rows", _DOING, "there are no rows to compare it on", "name histories with demand")
    missing = float((windows[:, :, CHANNELS.index("known")] == 0.0).mean())
    return parity_of(
        reader(windows), fit.said(network, windows), maker="JAX", missing_ratio=missing, doing=_DOING,
        cure="do not use it; install the jax and onnxruntime of the extra 'lstm'",
    )  # fmt: skip


def publish(folder: Path, network: Network, card: Mapping[str, Any], windows: Windows) -> Parity:
    """Write the file and, if it agrees with JAX on ``windows`` within 1e-5, the card; then swap ``folder``.

    ``card``: what is to be said of the network beside schema, channels, heads, quantiles, file and parity. Without
    agreement nothing is left and an earlier model stays: raises as ``compare``.
    """
    with staged(folder) as unfinished:
        content = export_onnx(network)
        (unfinished / NETWORK).write_bytes(content)
        known = {
            "schema": NETWORK_SCHEMA, "quantiles": list(QUANTILES), "channels": list(CHANNELS),
            "window_min": WINDOW_MIN, "heads_min": list(HEADS_MIN), "weights": weights(network),
            "files": {NETWORK: hashlib.sha256(content).hexdigest()},
        }  # fmt: skip
        write_json(unfinished / CARD, {**card, **known})
        parity = compare(load_demand_network(unfinished, CHANNELS, HEADS_MIN), network, windows)
        write_json(unfinished / CARD, {**card, **known, "parity": parity.said()})
    return parity


def weights(network: Network) -> int:
    """How many numbers were learned."""
    return sum(int(np.size(part)) for part in (*network.first, *network.second, network.w, network.b))
