package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// scheduleCase is one line; Profile is optional, a profile of a KubeSchedulerConfiguration.
type scheduleCase struct {
	Name    string          `json:"name"`
	Objects json.RawMessage `json:"objects"`
	Pod     json.RawMessage `json:"pod"`
	Profile json.RawMessage `json:"profile"`
}

// attempt is a started scheduler that has seen all objects, and the Pod as its queue handed it out.
type attempt struct {
	cluster   *cluster
	profile   config.KubeSchedulerProfile
	scheduler *scheduler.Scheduler
	framework framework.Framework
	snapshot  *internalcache.Snapshot
	queued    *framework.QueuedPodInfo
	pod       *v1.Pod
	crash     atomic.Pointer[string]
	expect    expectation
}

// disagreement is that SchedulePod did one thing and its steps, taken one by one, another.
type disagreement struct{ text string }

func (d *disagreement) Error() string { return d.text }

func disagree(format string, values ...any) error {
	return &disagreement{fmt.Sprintf(format, values...)}
}

// What is decided by an even chance, as the order of budgets, agrees once in so many tries, but for one case in 2^40.
const tries = 40

// answer is the case's expectation. A panic of the scheduler makes its result `crash`; `chance` is one where the
// scheduler did not do the same twice, as where it takes the first of the objects in a map. A disagreement that
// stays is a fault of this program.
func (c *scheduleCase) answer() (*expectation, error) {
	expect, first := c.try()
	last := first
	for i := 1; i < tries; i++ {
		var different *disagreement
		if !errors.As(last, &different) {
			break
		}
		expect, last = c.try()
	}
	if first != nil && last == nil {
		return &expectation{Result: byChance, Error: first.Error(), Feasible: []string{}}, nil
	}
	return expect, last
}

func (c *scheduleCase) try() (*expectation, error) {
	cluster, err := newCluster(c.Objects, c.Pod)
	if err != nil {
		return nil, err
	}
	profile, err := profileOf(c.Profile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := &attempt{cluster: cluster, profile: profile, expect: expectation{Feasible: []string{}}}
	handlers := utilruntime.PanicHandlers
	defer func() { utilruntime.PanicHandlers = handlers }()
	utilruntime.PanicHandlers = append(slices.Clone(handlers), a.noteCrash)
	if err := a.start(ctx); err != nil {
		return nil, err
	}
	err = a.run(ctx)
	if cause := a.crash.Load(); cause != nil {
		return &expectation{Result: crashed, Error: *cause, Feasible: []string{}}, nil
	}
	return &a.expect, err
}

// noteCrash keeps the first cause; it has the form of a panic handler, which a panic in another goroutine reaches.
func (a *attempt) noteCrash(_ context.Context, cause any) {
	text := fmt.Sprint(cause)
	a.crash.CompareAndSwap(nil, &text)
}

// start looks at all nodes and in one goroutine, so that an answer does not depend on which were looked at.
func (a *attempt) start(ctx context.Context) error {
	informers := scheduler.NewInformerFactory(a.cluster.client, 0, nil)
	a.snapshot = internalcache.NewEmptySnapshot()
	everyNode := int32(100)
	var err error
	a.scheduler, err = scheduler.New(ctx, a.cluster.client, informers, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(a.profile),
		scheduler.WithPercentageOfNodesToScore(&everyNode),
		scheduler.WithParallelism(1),
		scheduler.WithNodeInfoSnapshot(a.snapshot),
	)
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := a.scheduler.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	a.framework = a.scheduler.Profiles[v1.DefaultSchedulerName]
	if n, err := a.scheduler.Cache.PodCount(); err != nil || n != a.cluster.boundPods {
		return fmt.Errorf("the cache counts %d Pods, the case has %d: %w", n, a.cluster.boundPods, err)
	}
	return nil
}

func (a *attempt) run(ctx context.Context) error {
	for _, plugin := range a.framework.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, a.cluster.target); !status.IsSuccess() {
			a.expect.PreEnqueue = verdictOf(status)
			a.expect.PreEnqueue.Plugin = plugin.Name()
			break
		}
	}
	if err := a.pop(ctx); err != nil {
		return err
	}
	if a.expect.PreEnqueue != nil {
		a.expect.Result = gated
		if a.queued != nil {
			return errors.New("the Pod is gated and was queued")
		}
		return nil
	}
	if a.queued == nil {
		return errors.New("the Pod is not gated and was not queued")
	}
	a.pod = a.queued.Pod
	if a.cluster.askedNode != "" {
		a.pod = a.pod.DeepCopy()
		a.pod.Spec.NodeName = a.cluster.askedNode
		a.queued.Pod = a.pod
	}
	if err := a.scheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), a.snapshot); err != nil {
		return err
	}
	return a.decide(ctx)
}

// pop takes the Pod out of the queue and gives back what came before it: nominations are kept by the queue.
func (a *attempt) pop(ctx context.Context) error {
	queue := a.scheduler.SchedulingQueue
	var before []*v1.Pod
	for len(queue.PodsInActiveQ()) > 0 && a.queued == nil {
		entity, err := queue.Pop(klog.FromContext(ctx))
		if err != nil {
			return err
		}
		queued, ok := entity.(*framework.QueuedPodInfo)
		switch {
		case !ok:
			return fmt.Errorf("the queue holds a %T", entity)
		case queued.Pod.UID == a.cluster.target.UID:
			a.queued = queued
		default:
			before = append(before, queued.Pod)
		}
	}
	for _, pod := range before {
		queue.Done(pod.UID)
		queue.Add(ctx, pod)
	}
	return nil
}
