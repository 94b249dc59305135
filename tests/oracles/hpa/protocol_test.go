package hpa

// What comes in and what goes out: one JSON object a line, a sequence of syncs of one HPA each.
// Times are milliseconds since the bubble's start, amounts are thousandths, as in leadtime's mechanics/hpa_types.py.

type sequence struct {
	ID           string `json:"id"`
	Flags        flags  `json:"flags"`
	OwnClock     bool   `json:"own_clock"` // the controller's own re-queueing sets the time of each sync
	ScaledToZero bool   `json:"scaled_to_zero"`
	Steps        []step `json:"steps"`
}

type flags struct {
	SyncPeriodMs             int64   `json:"sync_period_ms"`
	ToleranceRatio           float64 `json:"tolerance_ratio"`
	DownscaleStabilisationMs int64   `json:"downscale_stabilisation_ms"`
	CPUInitialisationMs      int64   `json:"cpu_initialisation_ms"`
	InitialReadinessDelayMs  int64   `json:"initial_readiness_delay_ms"`
}

// step is the world just before one sync. A spec left out and pods not named are as before.
type step struct {
	AtMs           int64     `json:"at_ms"`
	Restart        bool      `json:"restart"`
	Spec           *spec     `json:"spec"`
	SpecReplicas   int32     `json:"spec_replicas"`
	StatusReplicas int32     `json:"status_replicas"`
	NoSelector     bool      `json:"no_selector"`
	Pods           []pod     `json:"pods"` // new or changed
	PodsGone       []string  `json:"pods_gone"`
	Readings       []reading `json:"readings"`
}

type spec struct {
	MinReplicas int32     `json:"min_replicas"`
	MaxReplicas int32     `json:"max_replicas"`
	Metrics     []metric  `json:"metrics"`
	Behavior    *behavior `json:"behavior"`
}

// metric: Target is percent for Utilization, thousandths otherwise.
type metric struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	Container  string `json:"container"`
	TargetType string `json:"target_type"`
	Target     int64  `json:"target"`
}

type behavior struct {
	ScaleUp   *rules `json:"scale_up"`
	ScaleDown *rules `json:"scale_down"`
}

type rules struct {
	WindowS        *int32   `json:"window_s"`
	Select         *string  `json:"select"`
	Policies       []policy `json:"policies"`
	ToleranceMilli *int64   `json:"tolerance_milli"`
}

type policy struct {
	Type    string `json:"type"`
	Value   int32  `json:"value"`
	PeriodS int32  `json:"period_s"`
}

type pod struct {
	Name           string             `json:"name"`
	Phase          string             `json:"phase"`
	Ready          string             `json:"ready"` // True, False, Unknown, or Absent
	ReadyChangedMs int64              `json:"ready_changed_ms"`
	StartedMs      *int64             `json:"started_ms"`
	Deleting       bool               `json:"deleting"`
	Containers     []containerRequest `json:"containers"`
}

type containerRequest struct {
	Container string           `json:"container"`
	Requests  map[string]int64 `json:"requests_milli"`
}

// reading of one metric, in the order of the spec: an error, values (external and object), or samples of pods, which
// stand in columns.
type reading struct {
	Error      bool     `json:"error"`
	Values     []int64  `json:"values_milli"`
	SamplePods []string `json:"sample_pods"`
	AtMs       []int64  `json:"at_ms"`
	WindowMs   []int64  `json:"window_ms"`
}

type answer struct {
	ID    string `json:"id"`
	Syncs []sync `json:"syncs"`
	Error string `json:"error,omitempty"`
}

// sync is what the controller did: scale.spec.replicas afterwards and the HPA's conditions as "Status/Reason".
type sync struct {
	Desired        int32  `json:"desired"`
	AbleToScale    string `json:"able_to_scale"`
	ScalingActive  string `json:"scaling_active"`
	ScalingLimited string `json:"scaling_limited"`
	ScaledToZero   string `json:"scaled_to_zero"`
}
