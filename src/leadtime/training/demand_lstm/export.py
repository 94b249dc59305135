"""A fitted network → ONNX, written operator by operator with ``onnx.helper``; equal weights, equal bytes."""

from typing import Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from leadtime.forecast.sequence_model import CHANNELS, HEADS_MIN, WINDOW_MIN
from leadtime.sources.demand_network import INPUT
from leadtime.training.demand_lstm.network import QUANTILES, Layer, Network

OPSET = 15
IR_VERSION = 8


def export_onnx(network: Network) -> bytes:
    """``INPUT`` float32 [rows, WINDOW_MIN, channels] → said [rows, heads, quantiles].

    The operator wants minutes first, and a bias of the inputs beside one of the state: the second is 0.
    """
    units = network.first.r.shape[2]
    nodes = [
        helper.make_node("Transpose", [INPUT], ["minutes"], perm=[1, 0, 2]),
        _lstm(network.first, "first", "minutes", ["both", "", ""]),
        helper.make_node("Transpose", ["both"], ["paired"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["paired", "hidden_shape"], ["hidden"]),
        _lstm(network.second, "second", "hidden", ["", "ends", ""]),
        helper.make_node("Transpose", ["ends"], ["ends_paired"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["ends_paired", "ends_shape"], ["state"]),
        helper.make_node("Gemm", ["state", "dense_w", "dense_b"], ["flat"]),
        helper.make_node("Reshape", ["flat", "said_shape"], ["said"]),
    ]
    shapes = {
        "hidden_shape": (0, 0, 2 * units), "ends_shape": (-1, network.w.shape[0]),
        "said_shape": (-1, len(HEADS_MIN), len(QUANTILES)),
    }  # fmt: skip
    constants = {
        **_weights(network.first, "first"), **_weights(network.second, "second"),
        "dense_w": _plain(network.w), "dense_b": _plain(network.b),
        **{name: np.array(shape, np.int64) for name, shape in shapes.items()},
    }  # fmt: skip
    graph = helper.make_graph(
        nodes, "leadtime-demand",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [None, WINDOW_MIN, len(CHANNELS)])],
        [helper.make_tensor_value_info("said", TensorProto.FLOAT, [None, len(HEADS_MIN), len(QUANTILES)])],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )  # fmt: skip
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="leadtime"
    )
    checker.check_model(made)
    return bytes(made.SerializeToString())


def _lstm(layer: Layer, name: str, takes: str, gives: list[str]) -> Any:
    inputs = [takes, f"{name}_w", f"{name}_r", f"{name}_b"]
    return helper.make_node("LSTM", inputs, gives, direction="bidirectional", hidden_size=layer.r.shape[2])


def _weights(layer: Layer, name: str) -> dict[str, Any]:
    b = _plain(layer.b)
    return {
        f"{name}_w": _plain(layer.w), f"{name}_r": _plain(layer.r),
        f"{name}_b": np.concatenate((b, np.zeros_like(b)), axis=1),
    }  # fmt: skip


def _plain(values: Any) -> Any:
    return np.ascontiguousarray(values, dtype=np.float32)
