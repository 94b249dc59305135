package hpa

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

var hpaResource = autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")

// never is a sync period that does not come round within a sequence: every sync is then asked for by the case.
const never = 10000 * time.Hour

// world is one HPA, its target, its pods and its metrics, around one HPA controller at a time.
type world struct {
	start  time.Time
	case_  sequence
	now    step // what the controller sees at present
	hpa    *autoscalingv2.HorizontalPodAutoscaler
	pods   map[string]any // what the store is filled with when a controller starts
	client *fake.Clientset
	scales *scalefake.FakeScaleClient

	podStore cache.Indexer
	stop     context.CancelFunc

	desired int32       // scale.spec.replicas, moved by the controller's writes
	synced  []time.Time // when the controller read the scale
}

func newWorld(c sequence) *world {
	w := &world{
		start: time.Now(), case_: c, pods: map[string]any{},
		// The newer NewClientset tracks who owns which field, which makes a sync fifty times slower.
		client: fake.NewSimpleClientset(), scales: &scalefake.FakeScaleClient{},
	}
	w.hpa = &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hpaName, UID: "autoscaler", Generation: 1},
	}
	if c.ScaledToZero {
		w.hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
			{Type: autoscalingv2.ScaledToZero, Status: v1.ConditionTrue, Reason: "ScaledToZero"},
		}
	}
	w.hpa.Spec = hpaSpec(*c.Steps[0].Spec)
	if err := w.client.Tracker().Create(hpaResource, w.hpa.DeepCopy(), namespace); err != nil {
		panic(err)
	}
	// Events are not looked at; kept, they would fill the memory.
	w.client.PrependReactor("*", "events", func(core.Action) (bool, runtime.Object, error) { return true, &v1.Event{}, nil })
	w.client.PrependReactor("update", "horizontalpodautoscalers", w.updateStatus)
	w.scales.AddReactor("get", "deployments", w.getScale)
	w.scales.AddReactor("update", "deployments", w.updateScale)
	return w
}

// updateStatus keeps what an API server keeps of a write to the status subresource: the status, not the spec.
func (w *world) updateStatus(action core.Action) (bool, runtime.Object, error) {
	update, ok := action.(core.UpdateAction)
	if !ok || action.GetSubresource() != "status" {
		return false, nil, nil
	}
	w.hpa.Status = *update.GetObject().(*autoscalingv2.HorizontalPodAutoscaler).Status.DeepCopy()
	return true, w.hpa.DeepCopy(), w.client.Tracker().Update(hpaResource, w.hpa.DeepCopy(), namespace)
}

func (w *world) getScale(core.Action) (bool, runtime.Object, error) {
	w.synced = append(w.synced, time.Now())
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: targetName},
		Spec:       autoscalingv1.ScaleSpec{Replicas: w.now.SpecReplicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: w.now.StatusReplicas, Selector: selector.String()},
	}
	if w.now.NoSelector {
		scale.Status.Selector = ""
	}
	return true, scale, nil
}

func (w *world) updateScale(action core.Action) (bool, runtime.Object, error) {
	scale := action.(core.UpdateAction).GetObject().(*autoscalingv1.Scale)
	w.desired = scale.Spec.Replicas
	return true, scale, nil
}

// startController runs a fresh controller: on its first sight of the HPA it syncs at once.
func (w *world) startController() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{apps})
	mapper.Add(apps.WithKind("Deployment"), meta.RESTScopeNamespace)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	pods := factory.Core().V1().Pods()
	period := never
	f := w.case_.Flags
	if w.case_.OwnClock {
		period = time.Duration(f.SyncPeriodMs) * time.Millisecond
	}
	controller := podautoscaler.NewHorizontalController(
		ctx, w.client.CoreV1(), w.scales, w.client.AutoscalingV2(), mapper, metricsClient{w},
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), pods, period,
		time.Duration(f.DownscaleStabilisationMs)*time.Millisecond, f.ToleranceRatio,
		time.Duration(f.CPUInitialisationMs)*time.Millisecond, time.Duration(f.InitialReadinessDelayMs)*time.Millisecond,
	)
	factory.Start(ctx.Done())
	synctest.Wait() // the informers have listed; so Run need not poll for them, and no time passes
	w.podStore = pods.Informer().GetIndexer()
	must(w.podStore, func(store cache.Indexer) error { return store.Replace(slices.Collect(maps.Values(w.pods)), "") })
	go controller.Run(ctx, 1)
}

// must fills the pod store, if there is one yet.
func must(store cache.Indexer, fill func(cache.Indexer) error) {
	if store == nil {
		return
	}
	if err := fill(store); err != nil {
		panic(err)
	}
}

// see makes s what the controller reads from now on.
func (w *world) see(s step) {
	w.now, w.desired = s, s.SpecReplicas
	for _, p := range s.Pods {
		made := podObject(p, w.start)
		w.pods[p.Name] = made
		must(w.podStore, func(store cache.Indexer) error { return store.Update(made) })
	}
	for _, name := range s.PodsGone {
		gone := w.pods[name]
		delete(w.pods, name)
		must(w.podStore, func(store cache.Indexer) error { return store.Delete(gone) })
	}
	if s.Spec != nil {
		w.hpa.Spec = hpaSpec(*s.Spec)
	}
	asksForSync := !w.case_.OwnClock && !s.Restart
	if asksForSync {
		w.hpa.Generation++ // since 1.37 a new generation is reconciled at once
	}
	if asksForSync || s.Spec != nil {
		if err := w.client.Tracker().Update(hpaResource, w.hpa.DeepCopy(), namespace); err != nil {
			panic(err)
		}
	}
}

func (w *world) condition(kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range w.hpa.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s/%s", c.Status, c.Reason)
		}
	}
	return ""
}

// metricsClient answers from the step, with the errors the real client gives for empty lists.
type metricsClient struct{ w *world }

func (m metricsClient) find(kind autoscalingv2.MetricSourceType, name, container string) (reading, error) {
	for i, metric := range m.w.hpa.Spec.Metrics {
		if metric.Type != kind || !named(metric, name, container) {
			continue
		}
		found := m.w.now.Readings[i]
		if found.Error || len(found.Values) == 0 {
			return reading{}, errors.New("no such metric at present")
		}
		return found, nil
	}
	return reading{}, fmt.Errorf("the case has no metric %s/%s/%s", kind, name, container)
}

func named(metric autoscalingv2.MetricSpec, name, container string) bool {
	switch metric.Type {
	case autoscalingv2.ExternalMetricSourceType:
		return metric.External.Metric.Name == name
	case autoscalingv2.ObjectMetricSourceType:
		return metric.Object.Metric.Name == name
	case autoscalingv2.PodsMetricSourceType:
		return metric.Pods.Metric.Name == name
	case autoscalingv2.ResourceMetricSourceType:
		return string(metric.Resource.Name) == name
	case autoscalingv2.ContainerResourceMetricSourceType:
		return string(metric.ContainerResource.Name) == name && metric.ContainerResource.Container == container
	}
	return false
}

func (m metricsClient) samples(found reading, err error) (metrics.PodMetricsInfo, time.Time, error) {
	if err != nil {
		return nil, time.Time{}, err
	}
	info := make(metrics.PodMetricsInfo, len(found.Values))
	for i, pod := range found.SamplePods {
		info[pod] = metrics.PodMetric{
			Timestamp: at(m.w.start, found.AtMs[i]), Window: time.Duration(found.WindowMs[i]) * time.Millisecond,
			Value: found.Values[i],
		}
	}
	return info, time.Now(), nil
}

func (m metricsClient) GetResourceMetric(_ context.Context, name v1.ResourceName, _ string, _ labels.Selector, container string) (metrics.PodMetricsInfo, time.Time, error) {
	if container != "" {
		return m.samples(m.find(autoscalingv2.ContainerResourceMetricSourceType, string(name), container))
	}
	return m.samples(m.find(autoscalingv2.ResourceMetricSourceType, string(name), ""))
}

func (m metricsClient) GetRawMetric(name, _ string, _, _ labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	return m.samples(m.find(autoscalingv2.PodsMetricSourceType, name, ""))
}

func (m metricsClient) GetObjectMetric(name, _ string, _ *autoscalingv2.CrossVersionObjectReference, _ labels.Selector) (int64, time.Time, error) {
	found, err := m.find(autoscalingv2.ObjectMetricSourceType, name, "")
	if err != nil {
		return 0, time.Time{}, err
	}
	return found.Values[0], time.Now(), nil
}

func (m metricsClient) GetExternalMetric(name, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	found, err := m.find(autoscalingv2.ExternalMetricSourceType, name, "")
	return found.Values, time.Now(), err
}
