package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// objects are the cluster of a case, as an API server would list them.
type objects struct {
	Nodes                  []v1.Node                      `json:"nodes"`
	Pods                   []v1.Pod                       `json:"pods"`
	Namespaces             []v1.Namespace                 `json:"namespaces"`
	PersistentVolumes      []v1.PersistentVolume          `json:"persistentvolumes"`
	PersistentVolumeClaims []v1.PersistentVolumeClaim     `json:"persistentvolumeclaims"`
	StorageClasses         []storagev1.StorageClass       `json:"storageclasses"`
	CSINodes               []storagev1.CSINode            `json:"csinodes"`
	CSIDrivers             []storagev1.CSIDriver          `json:"csidrivers"`
	CSIStorageCapacities   []storagev1.CSIStorageCapacity `json:"csistoragecapacities"`
	VolumeAttachments      []storagev1.VolumeAttachment   `json:"volumeattachments"`
	Services               []v1.Service                   `json:"services"`
	ReplicaSets            []appsv1.ReplicaSet            `json:"replicasets"`
	ReplicationControllers []v1.ReplicationController     `json:"replicationcontrollers"`
	StatefulSets           []appsv1.StatefulSet           `json:"statefulsets"`
	PodDisruptionBudgets   []policyv1.PodDisruptionBudget `json:"poddisruptionbudgets"`
	PriorityClasses        []schedulingv1.PriorityClass   `json:"priorityclasses"`
}

// cluster is a client that serves a case's objects, and what was written to it.
type cluster struct {
	client      *fake.Clientset
	target      *v1.Pod
	askedNode   string
	boundPods   int
	guard       sync.Mutex
	deletedPods sets.Set[string]
	podPatches  map[string]string
}

// newCluster decodes strictly: a misspelt field would silently make another case.
func newCluster(rawObjects, rawPod json.RawMessage) (*cluster, error) {
	var found objects
	if err := decodeStrictly(rawObjects, &found); err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	c := &cluster{target: &v1.Pod{}, deletedPods: sets.New[string](), podPatches: map[string]string{}}
	if err := decodeStrictly(rawPod, c.target); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	if err := c.keepLivePods(&found); err != nil {
		return nil, err
	}
	// A Pod that has a node is never queued. It is stored without, and gets the name back where plugins see it.
	c.askedNode, c.target.Spec.NodeName = c.target.Spec.NodeName, ""
	c.client = fake.NewSimpleClientset(append(found.list(), c.target.DeepCopy())...)
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		c.client.PrependReactor(verb, "*", c.swallow)
	}
	return c, nil
}

func decodeStrictly(raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// keepLivePods drops the Pods that have ended: the scheduler asks the API server to leave them out of its lists.
func (c *cluster) keepLivePods(found *objects) error {
	found.Pods = slices.DeleteFunc(found.Pods, func(pod v1.Pod) bool {
		return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	})
	for i := range found.Pods {
		if found.Pods[i].UID == "" || found.Pods[i].Name == "" {
			return fmt.Errorf("pod %d has no name or no UID", i)
		}
		if found.Pods[i].Spec.NodeName != "" {
			c.boundPods++
		}
	}
	return nil
}

func (o *objects) list() []runtime.Object {
	return slices.Concat(
		pointers(o.Nodes), pointers(o.Pods), pointers(o.Namespaces), pointers(o.PersistentVolumes),
		pointers(o.PersistentVolumeClaims), pointers(o.StorageClasses), pointers(o.CSINodes), pointers(o.CSIDrivers),
		pointers(o.CSIStorageCapacities), pointers(o.VolumeAttachments), pointers(o.Services),
		pointers(o.ReplicaSets), pointers(o.ReplicationControllers), pointers(o.StatefulSets),
		pointers(o.PodDisruptionBudgets), pointers(o.PriorityClasses),
	)
}

func pointers[T any, P interface {
	*T
	runtime.Object
}](items []T) []runtime.Object {
	list := make([]runtime.Object, len(items))
	for i := range items {
		list[i] = P(&items[i])
	}
	return list
}

// swallow notes a write and claims that it worked: what preemption sets in motion must not change the case.
func (c *cluster) swallow(action clienttesting.Action) (bool, runtime.Object, error) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if action.GetResource().Resource == "pods" {
		switch written := action.(type) {
		case clienttesting.DeleteActionImpl:
			c.deletedPods.Insert(written.Namespace + "/" + written.Name)
		case clienttesting.PatchActionImpl:
			c.podPatches[written.Namespace+"/"+written.Name] += string(written.Patch)
		}
	}
	return true, &v1.Pod{}, nil
}

func (c *cluster) deletions() []string {
	c.guard.Lock()
	defer c.guard.Unlock()
	return sets.List(c.deletedPods)
}

// clearedNominations are the Pods whose nominatedNodeName was patched, sorted; null in JSON where there are none.
func (c *cluster) clearedNominations() []string {
	c.guard.Lock()
	defer c.guard.Unlock()
	var names []string
	for name, patches := range c.podPatches {
		if strings.Contains(patches, "nominatedNodeName") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
