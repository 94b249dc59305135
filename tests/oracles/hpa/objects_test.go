package hpa

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
)

const (
	namespace  = "oracle"
	targetName = "target"
	hpaName    = "autoscaler"
)

var selector = labels.Set{"app": targetName}

func milli(value int64) *resource.Quantity {
	return resource.NewMilliQuantity(value, resource.DecimalSI)
}

func at(start time.Time, ms int64) time.Time {
	return start.Add(time.Duration(ms) * time.Millisecond)
}

// hpaSpec builds the spec and lets the API server's own defaulting fill in what the case leaves out.
func hpaSpec(from spec) autoscalingv2.HorizontalPodAutoscalerSpec {
	minReplicas := from.MinReplicas
	hpa := autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: targetName},
		MinReplicas:    &minReplicas,
		MaxReplicas:    from.MaxReplicas,
	}}
	for _, m := range from.Metrics {
		hpa.Spec.Metrics = append(hpa.Spec.Metrics, metricSpec(m))
	}
	if from.Behavior != nil {
		hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp:   scalingRules(from.Behavior.ScaleUp),
			ScaleDown: scalingRules(from.Behavior.ScaleDown),
		}
	}
	defaults.SetDefaults_HorizontalPodAutoscaler(&hpa)
	return hpa.Spec
}

func metricTarget(m metric) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.MetricTargetType(m.TargetType)}
	switch target.Type {
	case autoscalingv2.UtilizationMetricType:
		percent := int32(m.Target)
		target.AverageUtilization = &percent
	case autoscalingv2.AverageValueMetricType:
		target.AverageValue = milli(m.Target)
	case autoscalingv2.ValueMetricType:
		target.Value = milli(m.Target)
	}
	return target
}

func metricSpec(m metric) autoscalingv2.MetricSpec {
	made := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(m.Type)}
	target, name := metricTarget(m), autoscalingv2.MetricIdentifier{Name: m.Name}
	switch made.Type {
	case autoscalingv2.ExternalMetricSourceType:
		made.External = &autoscalingv2.ExternalMetricSource{Metric: name, Target: target}
	case autoscalingv2.ObjectMetricSourceType:
		object := autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: targetName}
		made.Object = &autoscalingv2.ObjectMetricSource{DescribedObject: object, Metric: name, Target: target}
	case autoscalingv2.PodsMetricSourceType:
		made.Pods = &autoscalingv2.PodsMetricSource{Metric: name, Target: target}
	case autoscalingv2.ResourceMetricSourceType:
		made.Resource = &autoscalingv2.ResourceMetricSource{Name: v1.ResourceName(m.Name), Target: target}
	case autoscalingv2.ContainerResourceMetricSourceType:
		made.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: v1.ResourceName(m.Name), Container: m.Container, Target: target,
		}
	}
	return made
}

func scalingRules(from *rules) *autoscalingv2.HPAScalingRules {
	if from == nil {
		return nil
	}
	made := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: from.WindowS}
	if from.Select != nil {
		selected := autoscalingv2.ScalingPolicySelect(*from.Select)
		made.SelectPolicy = &selected
	}
	for _, p := range from.Policies {
		made.Policies = append(made.Policies, autoscalingv2.HPAScalingPolicy{
			Type: autoscalingv2.HPAScalingPolicyType(p.Type), Value: p.Value, PeriodSeconds: p.PeriodS,
		})
	}
	if from.ToleranceMilli != nil {
		made.Tolerance = milli(*from.ToleranceMilli)
	}
	return made
}

func podObject(from pod, start time.Time) *v1.Pod {
	made := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: from.Name, UID: types.UID(from.Name), Labels: selector},
		Status:     v1.PodStatus{Phase: v1.PodPhase(from.Phase)},
	}
	if from.Deleting {
		made.DeletionTimestamp = &metav1.Time{Time: start}
	}
	if from.StartedMs != nil {
		made.Status.StartTime = &metav1.Time{Time: at(start, *from.StartedMs)}
	}
	if from.Ready != "Absent" {
		made.Status.Conditions = []v1.PodCondition{{
			Type:               v1.PodReady,
			Status:             v1.ConditionStatus(from.Ready),
			LastTransitionTime: metav1.Time{Time: at(start, from.ReadyChangedMs)},
		}}
	}
	for _, c := range from.Containers {
		requests := v1.ResourceList{}
		for name, value := range c.Requests {
			requests[v1.ResourceName(name)] = *milli(value)
		}
		made.Spec.Containers = append(made.Spec.Containers, v1.Container{
			Name: c.Container, Resources: v1.ResourceRequirements{Requests: requests},
		})
	}
	return made
}
