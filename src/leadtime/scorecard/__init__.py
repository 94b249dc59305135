"""Ticks and runs → the measures of the score card; one definition each, for replay, shadow and live."""
