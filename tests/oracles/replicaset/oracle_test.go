// Package replicaset asks Kubernetes' own ReplicaSet controller which pods it would delete: batches of cases in, one
// JSON array a line on standard input; one array of answers a line out. A test binary, because the controller reads
// the clock and only Go's virtual one (testing/synctest) can be set.
package replicaset

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/controller"
	_ "k8s.io/kubernetes/pkg/controller/replicaset"
)

// The controller's own functions; it has no door to them.

//go:linkname podsToDelete k8s.io/kubernetes/pkg/controller/replicaset.getPodsToDelete
func podsToDelete(filtered, related []*v1.Pod, diff int) []*v1.Pod

//go:linkname ranked k8s.io/kubernetes/pkg/controller/replicaset.getPodsRankedByRelatedPodsOnSameNode
func ranked(podsToRank, related []*v1.Pod) controller.ActivePodsWithRanks

type pod struct {
	UID             string `json:"uid"`
	Node            string `json:"node"`
	Phase           string `json:"phase"`
	Ready           bool   `json:"ready"`
	ReadySinceMs    *int64 `json:"ready_since_ms"` // before now; nil = the time is not known
	CreatedMs       int64  `json:"created_ms"`     // before now
	Restarts        int32  `json:"restarts"`
	SidecarRestarts int32  `json:"sidecar_restarts"`
	DeletionCost    int    `json:"deletion_cost"`
}

// question: which of Pods go when Delete of them must? Others are further pods of the same Deployment.
type question struct {
	Pods   []pod `json:"pods"`
	Others []pod `json:"others"`
	Delete int   `json:"delete"`
}

// answer: Deleted as indexes of Pods in the controller's order. Before[i] lists the pods that pod i is deleted before, by
// the controller's pairwise comparison.
type answer struct {
	Deleted []int   `json:"deleted"`
	Before  [][]int `json:"before"`
}

const age = 100 * 24 * time.Hour // how far the bubble's clock is put on, so that pods can be old

func TestOracle(t *testing.T) {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), json.NewEncoder(os.Stdout)
	synctest.Test(t, func(*testing.T) {
		time.Sleep(age + 500*time.Millisecond) // never on a whole second: the API's times are, and the original divides by an age
		for {
			line, err := in.ReadBytes('\n')
			if err == io.EOF {
				os.Exit(0) // before the testing package adds its own line
			}
			var asked []question
			if err != nil || json.Unmarshal(line, &asked) != nil {
				os.Exit(2)
			}
			answers := make([]answer, len(asked))
			for i, one := range asked {
				answers[i] = ask(one)
			}
			if err := out.Encode(answers); err != nil {
				os.Exit(2)
			}
		}
	})
}

func ask(one question) answer {
	index := map[types.UID]int{}
	var pods, related []*v1.Pod
	for i, each := range one.Pods {
		pods = append(pods, object(each))
		index[pods[i].UID] = i
	}
	related = append(related, pods...)
	for _, each := range one.Others {
		related = append(related, object(each))
	}
	ranks := ranked(append([]*v1.Pod{}, pods...), related)
	result := answer{Deleted: []int{}, Before: make([][]int, len(pods))}
	for i := range pods {
		result.Before[i] = []int{}
		for j := range pods {
			if ranks.Less(i, j) {
				result.Before[i] = append(result.Before[i], j)
			}
		}
	}
	for _, each := range podsToDelete(append([]*v1.Pod{}, pods...), related, one.Delete) {
		result.Deleted = append(result.Deleted, index[each.UID])
	}
	return result
}

func object(p pod) *v1.Pod {
	now := time.Now()
	always := v1.ContainerRestartPolicyAlways
	made := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID:               types.UID(p.UID),
			CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(p.CreatedMs) * time.Millisecond)),
		},
		Spec: v1.PodSpec{
			NodeName:       p.Node,
			InitContainers: []v1.Container{{Name: "sidecar", RestartPolicy: &always}, {Name: "init"}},
		},
		Status: v1.PodStatus{
			Phase:             v1.PodPhase(p.Phase),
			ContainerStatuses: []v1.ContainerStatus{{Name: "main", RestartCount: p.Restarts}, {Name: "second"}},
			InitContainerStatuses: []v1.ContainerStatus{
				{Name: "sidecar", RestartCount: p.SidecarRestarts}, {Name: "init", RestartCount: 9}, // not counted
			},
		},
	}
	if p.DeletionCost != 0 {
		made.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": strconv.Itoa(p.DeletionCost)}
	}
	ready := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse}
	if p.Ready {
		ready.Status = v1.ConditionTrue
	}
	if p.ReadySinceMs != nil {
		ready.LastTransitionTime = metav1.NewTime(now.Add(-time.Duration(*p.ReadySinceMs) * time.Millisecond))
	}
	made.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled}, ready}
	return made
}
