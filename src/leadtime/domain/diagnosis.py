"""Incidents and diagnoses: claims that cannot be printed without evidence."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from leadtime.domain.evidence import Evidence, Explanation
from leadtime.domain.refs import Scope


class Standing(StrEnum):
    """How well a claim stands; a probability only where it was calibrated, which is elsewhere (RiskScore)."""

    REPRODUCED = "Reproduced"
    CORROBORATED = "Corroborated"
    CONSISTENT = "Consistent"
    CONFLICTING = "Conflicting"
    REFUTED = "Refuted"
    NOT_EXAMINED = "NotExamined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One hypothesis with its standing, evidence for and against (ids), and what would settle it."""

    subject: Scope
    claim: Explanation
    standing: Standing
    evidence_for: tuple[str, ...]
    evidence_against: tuple[str, ...]
    would_settle: str

    def __post_init__(self) -> None:
        if self.standing is not Standing.NOT_EXAMINED and not (self.evidence_for or self.evidence_against):
            raise ValueError(f"diagnosing {self.subject.key}: {self.standing} needs evidence; use NotExamined without")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One incident record: what, when, hypotheses, and the evidence they point at."""

    id: str
    opened_at: datetime
    scope: Scope
    diagnoses: tuple[Diagnosis, ...]
    evidence: tuple[Evidence, ...]
