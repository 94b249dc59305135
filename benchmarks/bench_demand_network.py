"""1,000 windows in one read: the recurrent network as the controller asks it, beside JAX on the same windows.

    python benchmarks/bench_demand_network.py [--windows 1000] [--rounds 5] [--json]

The network has the shipped size (64/32, both directions) and drawn weights: what it says costs the same whatever it
learned. Milliseconds are of CPU (onnxruntime has one thread, JAX what it takes), the best round. Needs the extra lstm.
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from leadtime.forecast.sequence_model import CHANNELS, WINDOW_MIN, SequenceModel
from leadtime.sources.demand_network import OnnxNetwork
from leadtime.testing.forecast_battery import demand, fed
from leadtime.training.demand_lstm import fit, publish
from leadtime.training.demand_lstm.export import export_onnx
from leadtime.training.demand_lstm.network import untrained
from leadtime.training.demand_lstm.settings import LstmSettings


def cpu_ms(work: Callable[[], object], rounds: int) -> float:
    """CPU milliseconds of the best of ``rounds``, after one that is not counted."""
    took = []
    for _ in range(rounds + 1):
        begun = time.process_time()
        work()
        took.append(1e3 * (time.process_time() - begun))
    return min(took[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    draw = np.random.default_rng(0)
    network = untrained(LstmSettings().units, 0)
    network = network._replace(w=draw.normal(0.0, 0.1, network.w.shape).astype(np.float32))
    windows = draw.normal(size=(asked.windows, WINDOW_MIN, len(CHANNELS))).astype(np.float32)
    reader = OnnxNetwork(content=export_onnx(network))
    model = SequenceModel(reader=reader)
    rows = np.repeat(np.asarray(model.row(fed(model, demand(3000))))[None], asked.windows, axis=0)
    found = {
        "windows": asked.windows,
        "weights": publish.weights(network),
        "onnx_cpu_ms": round(cpu_ms(lambda: reader(windows), asked.rounds), 1),
        "model_read_cpu_ms": round(cpu_ms(lambda: model.read(rows, (9, 39)), asked.rounds), 1),
        "jax_cpu_ms": round(cpu_ms(lambda: fit.said(network, windows), asked.rounds), 1),
        "parity_ratio": publish.compare(reader, network, windows).largest_ratio,
    }
    if asked.json:
        print(json.dumps(found))
        return
    print(f"{found['windows']:,} windows, {found['weights']:,} weights, one thread of onnxruntime:")
    print(f"{found['onnx_cpu_ms']} ms CPU, {found['model_read_cpu_ms']} ms with the windows made from rows")
    print(f"JAX on the same windows: {found['jax_cpu_ms']} ms CPU; largest difference {found['parity_ratio']:.1e}")


if __name__ == "__main__":
    main()
