// Package hpa runs Kubernetes' own HPA controller, whole, in virtual time: sequences of syncs in, one JSON object a
// line on standard input; what the controller did out, one a line on standard output, in the same order.
// Built by leadtime.testing.control_plane as `go test -c`, because the virtual clock (testing/synctest) wants a *testing.T.
package hpa

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

func TestOracle(t *testing.T) {
	klog.SetLogger(logr.Discard())
	// The default handler sleeps by a clock outside the bubble: years of virtual time after the first error.
	utilruntime.ErrorHandlers = nil
	// The fake clientset keeps no resource versions, so the check that a cache has caught up cannot work here.
	if err := utilfeature.DefaultMutableFeatureGate.Set("StaleControllerConsistencyHPA=false"); err != nil {
		t.Fatal(err)
	}
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			os.Exit(0) // before the testing package adds its own line
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Encode(run(t, line)); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t *testing.T, line []byte) answer {
	var c sequence
	if err := json.Unmarshal(line, &c); err != nil {
		return answer{Error: err.Error()}
	}
	result := answer{ID: c.ID}
	if len(c.Steps) == 0 || c.Steps[0].Spec == nil {
		result.Error = "the first step needs a spec"
		return result
	}
	synctest.Test(t, func(*testing.T) { result.Syncs, result.Error = play(c) })
	return result
}

// play walks through the steps. With its own clock the controller syncs when its queue says so, and a step that is not
// due then is an error; otherwise each step brings about its sync.
func play(c sequence) (syncs []sync, problem string) {
	const beside = time.Millisecond
	w := newWorld(c)
	defer func() { w.stop() }()
	for i, s := range c.Steps {
		due, fresh := at(w.start, s.AtMs), i == 0 || s.Restart
		w.synced = w.synced[:0]
		switch {
		case fresh:
			if i > 0 {
				time.Sleep(time.Until(due) - beside) // or the old controller's queue may fire at the same instant
				w.stop()
				synctest.Wait()
			}
			time.Sleep(time.Until(due))
			s.Restart = true
			w.see(s)
			w.startController()
		case c.OwnClock:
			time.Sleep(time.Until(due) - beside)
			w.see(s)
			time.Sleep(2 * beside)
		default:
			time.Sleep(time.Until(due))
			w.see(s)
		}
		synctest.Wait()
		if len(w.synced) != 1 || !w.synced[0].Equal(due) {
			return syncs, fmt.Sprintf("step %d: wanted one sync at %s, had %s", i, due, w.synced)
		}
		syncs = append(syncs, sync{
			Desired:        w.desired,
			AbleToScale:    w.condition(autoscalingv2.AbleToScale),
			ScalingActive:  w.condition(autoscalingv2.ScalingActive),
			ScalingLimited: w.condition(autoscalingv2.ScalingLimited),
			ScaledToZero:   w.condition(autoscalingv2.ScaledToZero),
		})
		w.client.ClearActions()
		w.scales.ClearActions()
	}
	return syncs, ""
}
