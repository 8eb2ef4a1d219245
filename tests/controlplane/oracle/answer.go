package main

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/apis/core/validation"
)

// The results of a case.
const (
	gated         = "gated"
	scheduled     = "scheduled"
	unschedulable = "unschedulable"
	failed        = "error"
	crashed       = "crash"
	byChance      = "chance"
)

// expectation is the member `expect`. Scores are by plugin, then by node.
type expectation struct {
	NodeOrder        []string            `json:"node_order"`
	PreEnqueue       *verdict            `json:"preenqueue"`
	Result           string              `json:"result"`
	Error            string              `json:"error,omitempty"`
	PreFilter        *preFilterVerdict   `json:"prefilter,omitempty"`
	Filter           map[string]*verdict `json:"filter,omitempty"`
	Feasible         []string            `json:"feasible"`
	Nominated        *nominationTried    `json:"nominated,omitempty"`
	Raw              scores              `json:"raw,omitempty"`
	Scores           scores              `json:"scores,omitempty"`
	ScoreSkipped     []string            `json:"score_skipped,omitempty"`
	Weights          map[string]int64    `json:"weights,omitempty"`
	Total            map[string]int64    `json:"total,omitempty"`
	ScoreError       string              `json:"score_error,omitempty"`
	Best             []string            `json:"best,omitempty"`
	Acceptable       []string            `json:"acceptable,omitempty"`
	Suggested        string              `json:"suggested,omitempty"`
	FailureMessage   string              `json:"failure_message,omitempty"`
	FilterMessage    string              `json:"failure_message_without_postfilter,omitempty"`
	EventMessage     string              `json:"event_message,omitempty"`
	ConditionReason  string              `json:"condition_reason,omitempty"`
	RejectingPlugins []string            `json:"unschedulable_plugins,omitempty"`
	PostFilter       *postFilterOutcome  `json:"postfilter,omitempty"`
}

type scores map[string]map[string]int64

// verdict is a status; Excluded marks a node that no Filter saw, since a PreFilter had left it out.
type verdict struct {
	Plugin   string   `json:"plugin"`
	Code     string   `json:"code"`
	Reasons  []string `json:"reasons"`
	Excluded bool     `json:"excluded,omitempty"`
}

type preFilterVerdict struct {
	Plugin       string   `json:"plugin"`
	Code         string   `json:"code"`
	Reasons      []string `json:"reasons"`
	Nodes        []string `json:"nodes"`
	RestrictedBy []string `json:"restricted_by,omitempty"`
	Skipped      []string `json:"skipped"`
}

// nominationTried tells that the Pod's own nominated node was looked at first, and whether it passed.
type nominationTried struct {
	Node string `json:"node"`
	Used bool   `json:"used"`
}

type victimsOnNode struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdb_violations"`
}

// postFilterOutcome names Pods as namespace/name. Deterministic is false where only some candidates are looked at.
type postFilterOutcome struct {
	Code               string                   `json:"code"`
	Plugin             string                   `json:"plugin"`
	Message            string                   `json:"message"`
	NominatedNode      string                   `json:"nominated_node"`
	ClearsNomination   bool                     `json:"clears_nomination"`
	Victims            []string                 `json:"victims"`
	AcceptableNodes    []string                 `json:"acceptable_nodes"`
	Candidates         map[string]victimsOnNode `json:"candidates"`
	NonCandidates      map[string]*verdict      `json:"non_candidates"`
	Deleted            []string                 `json:"deleted"`
	ClearedNominations []string                 `json:"cleared_nominations"`
	Deterministic      bool                     `json:"deterministic"`
}

// verdictOf sorts the reasons: some plugins collect them in the order of a Go map.
func verdictOf(status *fwk.Status) *verdict {
	return &verdict{Plugin: pluginOf(status), Code: status.Code().String(), Reasons: reasonsOf(status, true)}
}

// pluginOf is empty for success, which is a nil status.
func pluginOf(status *fwk.Status) string {
	if status == nil {
		return ""
	}
	return status.Plugin()
}

func reasonsOf(status *fwk.Status, sorted bool) []string {
	if status == nil {
		return []string{}
	}
	reasons := append([]string{}, status.Reasons()...)
	if sorted {
		slices.Sort(reasons)
	}
	return reasons
}

// fail fills in what a failed attempt leaves behind.
func (e *expectation) fail(result, reason, message string) {
	e.Result, e.ConditionReason, e.FailureMessage, e.EventMessage = result, reason, message, eventNote(message)
}

// eventNote cuts a text to what the API takes as the note of an Event, as the scheduler does.
func eventNote(message string) string {
	const end = " ..."
	if len(message) <= validation.NoteLengthLimit {
		return message
	}
	return message[:validation.NoteLengthLimit-len(end)] + end
}
