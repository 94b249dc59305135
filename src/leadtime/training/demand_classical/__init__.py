"""Minutes of history → the classical models with the constants that did best on it: small grids, numpy only."""

from leadtime.training.demand_classical.field import classical

__all__ = ["classical"]
