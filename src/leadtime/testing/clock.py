"""A clock that moves only when told: for tests and scenarios, where nothing ever sleeps."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """``now`` is an aware UTC instant; ``forward`` moves it."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or datetime(2026, 3, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The current instant."""
        return self.now

    def forward(self, seconds: float) -> datetime:
        """Move on by ``seconds`` and return the new instant."""
        self.now += timedelta(seconds=seconds)
        return self.now
