"""Every rival as a trainee, the peers' first. Registering one is one line here."""

from leadtime.domain.calendar import Calendar
from leadtime.training.backtest.trainee import Ready, Trainee
from leadtime.training.rivals.light_lags import LightTrainee
from leadtime.training.rivals.nixtla import AutoEtsHour, AutoEtsWeek, MstlEts, NixtlaTrainee
from leadtime.training.rivals.peers import FftLastPeriod, ReplicaTrainee
from leadtime.training.rivals.prophet_days import ProphetTrainee


def rivals(calendar: Calendar | None = None) -> tuple[Trainee, ...]:
    """The two open peers' methods, then the textbook's and the libraries'. They are compared, never chosen."""
    return (
        ReplicaTrainee(),
        Ready(model=FftLastPeriod()),
        NixtlaTrainee(model=AutoEtsHour()),
        NixtlaTrainee(model=AutoEtsWeek()),
        NixtlaTrainee(model=MstlEts()),
        ProphetTrainee(calendar=calendar or Calendar()),
        LightTrainee(),
    )
