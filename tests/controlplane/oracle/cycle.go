package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// cycle is one scheduling cycle taken apart, to be held against the same cycle in one piece.
type cycle struct {
	*attempt
	nodes       []fwk.NodeInfo
	state       fwk.CycleState
	allowed     *fwk.PreFilterResult
	diagnosis   framework.Diagnosis
	feasible    []fwk.NodeInfo
	faults      []string
	inOnePiece  scheduler.ScheduleResult
	failedWhole error
}

// decide runs the scheduler's own SchedulePod, then each step for itself, and refuses to answer where they differ.
func (a *attempt) decide(ctx context.Context) error {
	c := &cycle{attempt: a, state: newState(), diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}}
	var err error
	if c.nodes, err = a.snapshot.NodeInfos().List(); err != nil {
		return err
	}
	for _, node := range c.nodes {
		a.expect.NodeOrder = append(a.expect.NodeOrder, node.Node().Name)
	}
	if c.schedulePod(ctx); a.crash.Load() != nil {
		return nil
	}
	if len(c.nodes) == 0 {
		if !errors.Is(c.failedWhole, scheduler.ErrNoNodesAvailable) {
			return disagree("without nodes SchedulePod says %v", c.failedWhole)
		}
		a.expect.fail(unschedulable, v1.PodReasonUnschedulable, c.failedWhole.Error())
		return nil
	}
	c.filter(ctx)
	switch tried := a.expect.Nominated; {
	case tried != nil && tried.Used:
		c.score(ctx)
		return c.settle([]string{tried.Node})
	case len(c.faults) > 0:
		return c.settleFault()
	case len(c.feasible) > 0:
		c.score(ctx)
		if len(c.feasible) == 1 {
			return c.settle(slices.Clone(a.expect.Feasible))
		}
		if a.expect.ScoreError != "" {
			c.faults = []string{a.expect.ScoreError}
			return c.settleFault()
		}
		return c.settle(a.expect.Best)
	default:
		return c.settleRefusal(ctx)
	}
}

// schedulePod notes a panic: what makes the scheduler crash is not taken apart.
func (c *cycle) schedulePod(ctx context.Context) {
	defer func() {
		if cause := recover(); cause != nil {
			c.noteCrash(ctx, cause)
		}
	}()
	c.inOnePiece, c.failedWhole = c.scheduler.SchedulePod(ctx, c.framework, newState(), c.queued)
}

func newState() fwk.CycleState {
	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	return state
}

func (c *cycle) filter(ctx context.Context) {
	allowed, status, restrictedBy := c.framework.RunPreFilterPlugins(ctx, c.state, c.pod)
	c.allowed, c.diagnosis.UnschedulablePlugins = allowed, restrictedBy
	found := &preFilterVerdict{
		Plugin: pluginOf(status), Code: status.Code().String(), Reasons: reasonsOf(status, false),
		RestrictedBy: sets.List(restrictedBy), Skipped: sets.List(c.state.GetSkipFilterPlugins()),
	}
	if !allowed.AllNodes() {
		found.Nodes = append([]string{}, sets.List(allowed.NodeNames)...)
	}
	c.expect.PreFilter = found
	switch {
	case status.IsSuccess():
		c.expect.Filter = map[string]*verdict{}
		excluded := outside(restrictedBy)
		c.tryNomination(ctx)
		if !c.allowed.AllNodes() {
			// Who refused the nominated node is in the set by now: the message names it, too.
			c.diagnosis.NodeToStatus.SetAbsentNodesStatus(outside(restrictedBy))
		}
		c.filterNodes(ctx, excluded)
	case status.IsRejected():
		c.diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		c.diagnosis.PreFilterMsg = status.Message()
		c.diagnosis.AddPluginStatus(status)
	default:
		c.faults = append(c.faults, status.AsError().Error())
	}
}

// tryNomination looks at the Pod's nominated node first, also outside of what PreFilter allows; why it is refused
// counts among the reasons of the attempt.
func (c *cycle) tryNomination(ctx context.Context) {
	name := c.pod.Status.NominatedNodeName
	if name == "" {
		return
	}
	c.expect.Nominated = &nominationTried{Node: name}
	node, err := c.snapshot.Get(name)
	if err != nil {
		return
	}
	status := c.framework.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, node)
	c.expect.Nominated.Used = status.IsSuccess()
	if status.IsRejected() {
		c.reject(name, status)
	}
}

// outside is the status of nodes that PreFilter leaves out.
func outside(plugins sets.Set[string]) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins)))
}

func (c *cycle) filterNodes(ctx context.Context, excluded *fwk.Status) {
	for _, node := range c.nodes {
		name := node.Node().Name
		if !c.allowed.AllNodes() && !c.allowed.NodeNames.Has(name) {
			c.expect.Filter[name] = verdictOf(excluded)
			c.expect.Filter[name].Excluded = true
			continue
		}
		status := c.framework.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, node)
		if status.IsSuccess() {
			c.expect.Filter[name] = nil
			c.feasible = append(c.feasible, node)
			c.expect.Feasible = append(c.expect.Feasible, name)
			continue
		}
		c.expect.Filter[name] = verdictOf(status)
		if status.IsRejected() {
			c.reject(name, status)
		} else {
			c.faults = append(c.faults, status.AsError().Error())
		}
	}
	slices.Sort(c.expect.Feasible)
}

func (c *cycle) reject(node string, status *fwk.Status) {
	c.diagnosis.NodeToStatus.Set(node, status)
	c.diagnosis.AddPluginStatus(status)
}

// score also scores a single feasible node, or what a nomination made needless, so that there is more to compare.
func (c *cycle) score(ctx context.Context) {
	if len(c.feasible) == 0 {
		return
	}
	if status := c.framework.RunPreScorePlugins(ctx, c.state, c.pod, c.feasible); !status.IsSuccess() {
		c.expect.ScoreError = status.AsError().Error()
		return
	}
	found, status := c.framework.RunScorePlugins(ctx, c.state, c.pod, c.feasible)
	c.expect.ScoreSkipped = sets.List(c.state.GetSkipScorePlugins())
	if !status.IsSuccess() {
		c.expect.ScoreError = status.AsError().Error()
		return
	}
	if slices.ContainsFunc(found, func(node fwk.NodePluginScores) bool { return node.Name == "" }) {
		c.awaitCrash()
		return
	}
	c.expect.Raw, c.expect.Scores = scores{}, scores{}
	c.expect.Weights, c.expect.Total = map[string]int64{}, map[string]int64{}
	for _, plugin := range c.framework.ListPlugins().Score.Enabled {
		if !c.state.GetSkipScorePlugins().Has(plugin.Name) {
			c.expect.Weights[plugin.Name] = int64(plugin.Weight)
			c.expect.Raw[plugin.Name], c.expect.Scores[plugin.Name] = map[string]int64{}, map[string]int64{}
		}
	}
	c.note(found)
}

// awaitCrash waits for the cause: a goroutine that panics counts as done before the panic is handled. A crash that
// only scoring what need not be scored brings about is none of the scheduler's; it leaves the case without scores.
func (c *cycle) awaitCrash() {
	for c.crash.Load() == nil {
		time.Sleep(time.Millisecond)
	}
	if len(c.feasible) == 1 || c.expect.Nominated != nil && c.expect.Nominated.Used {
		c.crash.Store(nil)
	}
}

func (c *cycle) note(found []fwk.NodePluginScores) {
	best := found[0].TotalScore
	for _, node := range found {
		best = max(best, node.TotalScore)
		c.expect.Total[node.Name] = node.TotalScore
		for _, raw := range node.RawScores {
			c.expect.Raw[raw.Name][node.Name] = raw.Score
		}
		for _, weighted := range node.Scores {
			c.expect.Scores[weighted.Name][node.Name] = weighted.Score / c.expect.Weights[weighted.Name]
		}
	}
	for _, node := range found {
		if node.TotalScore == best {
			c.expect.Best = append(c.expect.Best, node.Name)
		}
	}
	slices.Sort(c.expect.Best)
}

func (c *cycle) settle(acceptable []string) error {
	if c.failedWhole != nil || !slices.Contains(acceptable, c.inOnePiece.SuggestedHost) {
		return disagree("SchedulePod chooses %q (%v), step by step any of %v is right",
			c.inOnePiece.SuggestedHost, c.failedWhole, acceptable)
	}
	c.expect.Result, c.expect.Acceptable, c.expect.Suggested = scheduled, acceptable, c.inOnePiece.SuggestedHost
	return nil
}

// settleFault takes the text of SchedulePod: of the faults of several nodes, which one it tells is chance.
func (c *cycle) settleFault() error {
	if c.failedWhole == nil || !slices.Contains(c.faults, c.failedWhole.Error()) {
		return disagree("SchedulePod says %v, step by step the faults are %q", c.failedWhole, c.faults)
	}
	c.expect.Error = c.failedWhole.Error()
	c.expect.fail(failed, v1.PodReasonSchedulerError, c.expect.Error)
	return nil
}

func (c *cycle) settleRefusal(ctx context.Context) error {
	var whole *framework.FitError
	if !errors.As(c.failedWhole, &whole) {
		return disagree("SchedulePod says %v, step by step no node is left", c.failedWhole)
	}
	taken := &framework.FitError{Pod: c.pod, NumAllNodes: len(c.nodes), Diagnosis: c.diagnosis}
	if taken.Error() != whole.Error() {
		return disagree("SchedulePod says %q, step by step it is %q", whole, taken)
	}
	c.expect.FilterMessage = taken.Error()
	c.expect.RejectingPlugins = sets.List(c.diagnosis.UnschedulablePlugins)
	outcome, err := c.postFilter(ctx)
	if err != nil {
		return err
	}
	c.expect.PostFilter = outcome
	taken.Diagnosis.PostFilterMsg = outcome.Message
	c.expect.fail(unschedulable, v1.PodReasonUnschedulable, taken.Error())
	return nil
}
