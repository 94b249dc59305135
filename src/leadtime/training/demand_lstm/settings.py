"""How the recurrent network is built and fitted: one set for all workloads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmSettings:
    """``units``: of the two layers, each in both directions. ``patience``: epochs without a gain on the watched part.

    ``origins``: windows taken at most, spread evenly over the history.
    """

    units: tuple[int, int] = (64, 32)
    epochs: int = 12
    patience: int = 3
    batch: int = 128
    learning_rate: float = 3e-3
    weight_decay: float = 1e-3
    clip_norm: float = 1.0
    origins: int = 4_000
