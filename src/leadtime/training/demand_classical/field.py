"""The policy and what the calendar says of days → the classical models as trainees, simplest first."""

from itertools import product

from leadtime.forecast.days import DayRules
from leadtime.forecast.holt_winters import HoltWinters
from leadtime.forecast.seasonal_naive import SeasonalNaive
from leadtime.forecast.theta import Theta
from leadtime.forecast.usual_change import UsualChange
from leadtime.training.backtest.trainee import Ready, Trainee
from leadtime.training.demand_classical.arma import ArimaTrainee
from leadtime.training.demand_classical.choice import Grid

DAY_MIN = 1440
# (level minutes, smooth cells, doubt). Levels that follow the noise of the last day (0) and much doubt come first: they
# bear drift. Long fixed levels are left out: on World Cup 60 minutes did best on the quiet days before the matches, and
# hit 0.70 on the days of the matches (last value and five-minute mean 0.80, this choice 0.80).
USUAL_CHANGE = ((0, 7, 30.0), (0, 3, 4.0), (0, 1, 1.0), (0, 13, 4.0), (3, 1, 1.0), (1, 1, 1.0), (3, 7, 4.0))
THETA = tuple(product((0.2, 0.4, 0.8), (30, 90, 240), (1.3, 2.0)))  # smoothing, minutes of the line, θ
HOLT_WINTERS = tuple(
    (alpha, beta, gamma, 0.9) for alpha, beta, gamma in product((0.2, 0.5, 0.9), (0.0, 0.1), (0.05, 0.2))
)


def classical(rules: DayRules, max_days: int, horizons_min: tuple[int, ...] = (10, 40)) -> tuple[Trainee, ...]:
    """Seasonal naive, theta, ARIMA, Holt-Winters, last value × usual change; ``horizons_min``: where errors count."""
    theta = tuple(Theta(alpha=a, line_min=line, theta=t) for a, line, t in THETA)
    winters = tuple(HoltWinters(alpha=a, beta=b, gamma=g, phi=phi) for a, b, g, phi in HOLT_WINTERS)
    change = tuple(
        UsualChange(rules=rules, max_days=max_days, level_minutes=level, smooth_cells=width, doubt=doubt)
        for level, width, doubt in USUAL_CHANGE
    )
    return (
        Ready(model=SeasonalNaive(zone=rules.zone, max_days=max_days)),
        Grid(candidates=theta, warm_min=240, horizons_min=horizons_min),
        ArimaTrainee(horizons_min=horizons_min),
        Grid(candidates=winters, warm_min=2 * DAY_MIN + 60, horizons_min=horizons_min),
        Grid(candidates=change, warm_min=2 * DAY_MIN + 60, horizons_min=horizons_min),
    )
