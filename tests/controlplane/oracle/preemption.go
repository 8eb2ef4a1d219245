package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

const patience = 5 * time.Second

type victimsByNode map[string]*extenderv1.Victims

// postFilter first finds every candidate of preemption, then runs the profile's PostFilter, which takes one.
func (c *cycle) postFilter(ctx context.Context) (*postFilterOutcome, error) {
	out := &postFilterOutcome{
		Victims: []string{}, AcceptableNodes: []string{}, Candidates: map[string]victimsOnNode{},
		NonCandidates: map[string]*verdict{}, Deterministic: true,
	}
	candidates, err := c.candidates(ctx, out)
	if err != nil {
		return nil, err
	}
	result, status := c.framework.RunPostFilterPlugins(ctx, c.state, c.cluster.target, c.diagnosis.NodeToStatus)
	out.Code, out.Plugin, out.Message = status.Code().String(), pluginOf(status), status.Message()
	if result != nil && result.NominatingInfo != nil {
		out.NominatedNode = result.NominatingInfo.NominatedNodeName
		out.ClearsNomination = out.NominatedNode == "" && result.NominatingInfo.NominatingMode == fwk.ModeOverride
	}
	if out.NominatedNode == "" {
		if len(candidates) > 0 && status.Code() != fwk.Error {
			return nil, disagree("nothing is nominated (%s), candidates are %v", out.Message, out.Candidates)
		}
		out.Deleted = c.cluster.deletions()
		return out, nil
	}
	return out, c.noteNomination(out, candidates)
}

// candidates asks a preemption plugin of our own, with the profile's arguments, about every node it could help.
func (c *cycle) candidates(ctx context.Context, out *postFilterOutcome) (victimsByNode, error) {
	found := victimsByNode{}
	args := preemptionArgs(c.profile, c.framework.ListPlugins().PostFilter.Enabled)
	if args == nil {
		return found, nil
	}
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	plugin, err := defaultpreemption.New(ctx, args, c.framework, gates)
	if err != nil {
		return nil, err
	}
	pod, refusals := c.cluster.target, c.diagnosis.NodeToStatus
	nodes, err := refusals.NodesForStatusCode(c.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	eligible, _ := plugin.PodEligibleToPreemptOthers(ctx, pod, refusals.Get(pod.Status.NominatedNodeName))
	if !eligible || len(nodes) == 0 {
		return found, nil
	}
	budgets, err := plugin.Evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	_, wanted := plugin.GetOffsetAndNumCandidates(int32(len(nodes)))
	// What a dry run finds wrong shows in the real run, too.
	candidates, others, _ := plugin.Evaluator.DryRunPreemption(ctx, c.state, pod, nodes, budgets, 0, int32(len(nodes)))
	if wanted == 0 {
		candidates = nil // a share of few nodes comes to none: the real run has no room for any either
	}
	for _, candidate := range candidates {
		victims := candidate.Victims()
		found[candidate.Name()] = victims
		out.Candidates[candidate.Name()] = victimsOnNode{Victims: namesOf(victims.Pods), PDBViolations: victims.NumPDBViolations}
	}
	others.ForEachExplicitNode(func(name string, status *fwk.Status) { out.NonCandidates[name] = verdictOf(status) })
	out.Deterministic = int(wanted) >= len(nodes) || len(candidates) <= int(wanted)
	return found, nil
}

func namesOf(pods []*v1.Pod) []string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Namespace + "/" + pod.Name
	}
	return names
}

// noteNomination waits for the deletions, which the plugin leaves to a goroutine; terminating victims get none.
func (c *cycle) noteNomination(out *postFilterOutcome, candidates victimsByNode) error {
	out.AcceptableNodes = slices.Sorted(maps.Keys(candidates))
	if out.Deterministic {
		out.AcceptableNodes = leastHarm(candidates)
	}
	if !slices.Contains(out.AcceptableNodes, out.NominatedNode) {
		return disagree("%s is nominated, right are %v", out.NominatedNode, out.AcceptableNodes)
	}
	victims := candidates[out.NominatedNode].Pods
	out.Victims = namesOf(victims)
	slices.Sort(out.Victims)
	wanted := 0
	for _, pod := range victims {
		if pod.DeletionTimestamp == nil {
			wanted++
		}
	}
	for end := time.Now().Add(patience); len(c.cluster.deletions()) < wanted && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	out.Deleted = c.cluster.deletions()
	out.ClearedNominations = c.cluster.clearedNominations()
	if len(out.Deleted) != wanted {
		return fmt.Errorf("%d Pods are deleted, %d should be", len(out.Deleted), wanted)
	}
	return nil
}

// leastHarm are the nodes that tie when the plugin weighs the victims: budgets broken, the highest priority, the sum
// of priorities, how many there are, and how late the oldest of the most important began. Pods without a start
// count as just begun, all at the same moment.
func leastHarm(candidates victimsByNode) []string {
	criteria := []func(*extenderv1.Victims) int64{
		func(v *extenderv1.Victims) int64 { return v.NumPDBViolations },
		func(v *extenderv1.Victims) int64 { return int64(corev1helpers.PodPriority(v.Pods[0])) },
		func(v *extenderv1.Victims) int64 {
			sum := int64(0)
			for _, pod := range v.Pods {
				sum += int64(corev1helpers.PodPriority(pod)) - math.MinInt32
			}
			return sum
		},
		func(v *extenderv1.Victims) int64 { return int64(len(v.Pods)) },
		func(v *extenderv1.Victims) int64 { return -oldestOfTheMostImportant(v.Pods) },
	}
	left := slices.Sorted(maps.Keys(candidates))
	for _, harm := range criteria {
		least := int64(math.MaxInt64)
		for _, name := range left {
			least = min(least, harm(candidates[name]))
		}
		left = slices.DeleteFunc(left, func(name string) bool { return harm(candidates[name]) > least })
	}
	return left
}

func oldestOfTheMostImportant(pods []*v1.Pod) int64 {
	highest := int32(math.MinInt32)
	for _, pod := range pods {
		highest = max(highest, corev1helpers.PodPriority(pod))
	}
	oldest := int64(math.MaxInt64)
	for _, pod := range pods {
		if corev1helpers.PodPriority(pod) == highest && pod.Status.StartTime != nil {
			oldest = min(oldest, pod.Status.StartTime.UnixNano())
		}
	}
	return oldest
}
