"""Every reason leadtime can give, once. Identifiers are stable; docs/reasons.md explains each (a test compares)."""

from enum import StrEnum


class Reason(StrEnum):
    """PascalCase, answers *why*; the text is what the page, the report and the ledger show."""

    # why a raise was proposed or chosen
    FORECAST_ABOVE_READY = "ForecastAboveReady"
    NODES_NEEDED_AHEAD = "NodesNeededAhead"
    SURGE_ABOVE_FORECAST = "SurgeAboveForecast"
    STEADY_HEADROOM = "SteadyHeadroom"
    MISSING_DATA_HOLD = "MissingDataHold"
    RENEWED = "Renewed"
    FORECAST_BEATS_LAST_VALUE = "ForecastBeatsLastValue"
    # why a pod at risk, or what stands around it, is spared
    POD_AT_RISK = "PodAtRisk"
    NODE_AT_RISK = "NodeAtRisk"
    SPARE_BEFORE_FAILURE = "SpareBeforeFailure"
    # why something was lowered or given back
    FORECAST_BELOW_FLOOR = "ForecastBelowFloor"
    LAPSED = "Lapsed"
    BUFFER_NO_LONGER_NEEDED = "BufferNoLongerNeeded"
    EMPTY_NODES = "EmptyNodes"
    KILL_SWITCH = "KillSwitch"
    # queue health
    QUEUE_UNHEALTHY = "QueueUnhealthy"
    QUEUE_RECOVERED = "QueueRecovered"
    QUEUE_INPUTS_STALE = "QueueInputsStale"
    # why nothing was done
    ENOUGH_CAPACITY = "EnoughCapacity"
    WITHIN_TOLERANCE = "WithinTolerance"
    MODEL_LOSES_TO_LAST_VALUE = "ModelLosesToLastValue"
    PREDICTION_DOES_NOT_PAY = "PredictionDoesNotPay"
    HISTORY_TOO_SHORT = "HistoryTooShort"
    NO_AGENT_SPOKE = "NoAgentSpoke"
    # why a proposal was refused or limited by the guard
    REPLICA_CAP = "ReplicaCap"
    RATE_LIMIT = "RateLimit"
    CAPACITY_NOT_READY = "CapacityNotReady"
    POD_HOUR_BUDGET = "PodHourBudget"
    MISSING_NEVER_LOWERS = "MissingNeverLowers"
    HOLD_EXPIRED = "HoldExpired"
    WARM_HOLD = "WarmHold"
    NO_EXPIRY = "NoExpiry"
    POOL_LIMIT = "PoolLimit"
    RISK_BELOW_THRESHOLD = "RiskBelowThreshold"
    RISK_BUDGET = "RiskBudget"
    SPARE_DOES_NOT_PAY = "SpareDoesNotPay"
    # why a proposal lost at the referee
    OUTRANKED = "Outranked"
    SERVED_BY_WINNER = "ServedByWinner"
    QUEUE_BEFORE_COST = "QueueBeforeCost"
    DUPLICATE = "Duplicate"
    # outcomes
    APPLIED = "Applied"
    SHADOW_ONLY = "ShadowOnly"
    NOT_ON_LADDER = "NotOnLadder"
    WRITE_FAILED = "WriteFailed"
