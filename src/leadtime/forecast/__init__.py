"""Demand models behind one interface, surge detector, lead-time learner: series and samples → forecasts."""
