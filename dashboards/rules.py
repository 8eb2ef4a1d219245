"""How the rules affect placement: their weights, which nodes they refuse, whether their scores differ between nodes."""

from __future__ import annotations

from typing import Final

from dashboards.panels import (
    OF_JOB,
    Dashboard,
    Line,
    Panel,
    Stat,
    Timeline,
    choice,
    leading,
    or_none,
    replica_variables,
)

_RATE: Final = "[$__rate_interval]"
_OURS: Final = '<vane>, rule=~"$rule"'
_HELD_BACK: Final = leading('scheduler_unschedulable_pods{<vane>, plugin="SignalFilter"}')

_NOW: Final[list[Panel]] = [
    Stat("Rules", "Rules in force.", "none", [("max(vane_rules_loaded{<vane>})", "rules")], width=4),
    Stat(
        "Last reload",
        "1: every replica has loaded the current rule files. 0: a replica refused them and keeps the previous rules.",
        "none",
        [("min(vane_rules_last_reload_successful{<vane>})", "loaded")],
        width=4,
        steps=[(None, "red"), (1, "green")],
    ),
    Stat(
        "Rules since",
        "When the rules in force were loaded, on the replica that loaded them last.",
        "dateTimeFromNow",
        [("max(vane_rules_last_reload_success_timestamp_seconds{<vane>}) * 1000", "loaded")],
        width=4,
    ),
    Stat(
        "Nodes refused",
        "Nodes refused now by the rule that refuses the most.",
        "none",
        [(f"max(vane_rule_refused_nodes{{{_OURS}}}) or vector(0)", "nodes")],
        width=4,
        steps=[(None, "green"), (1, "orange")],
    ),
    Stat(
        "Open valves",
        "Rules that only score for now, because they would refuse too many nodes or their data is suspect.",
        "none",
        [(f"sum(max by (rule) (vane_rule_valve_open{{{_OURS}}})) or vector(0)", "open")],
        width=4,
        steps=[(None, "green"), (1, "red")],
    ),
    Stat(
        "Pods held back",
        "Pods that wait because rules refused all nodes that could otherwise take them.",
        "none",
        [(f"sum({_HELD_BACK}) or vector(0)", "Pods")],
        width=4,
        steps=[(None, "green"), (1, "red")],
    ),
]

_SAY: Final[list[Panel]] = [
    Line(
        "Share of the weights",
        "The rule's share of the sum of all weights, plugins and rules, in the last decision in which it scored.",
        "percentunit",
        [(f"max by (rule) (vane_rule_weight_share_ratio{{{_OURS}}})", "{{rule}}")],
        low=0,
    ),
    Line(
        "Weight",
        "The weight now: as written in the file, or as set by the rule's weight signal.",
        "none",
        [(f"max by (rule) (vane_rule_weight{{{_OURS}}})", "{{rule}}")],
        low=0,
    ),
    Line(
        "Spread of the scores",
        "Highest minus lowest score, 0 to 100, that the rule gives to a node now. At 0 it prefers no node.",
        "none",
        [(f"max by (rule) (vane_rule_score_spread{{{_OURS}}})", "{{rule}}")],
        low=0,
        high=100,
    ),
]

_REFUSALS: Final[list[Panel]] = [
    Line(
        "Nodes refused now",
        "Nodes whose sample is beyond the rule's limits, or was and has not reached `clear` yet.",
        "none",
        [(or_none(f"max by (rule) (vane_rule_refused_nodes{{{_OURS}}})", "rule"), "{{rule}}")],
        width=12,
        low=0,
    ),
    Line(
        "Nodes refused per attempt",
        "Nodes that the rule refused per attempt of a Pod that it covers, without those refused by an earlier filter.",
        "none",
        [
            (
                or_none(
                    f"sum by (rule) (rate(vane_rule_refusals_total{{{_OURS}}}{_RATE})) "
                    f"/ sum by (rule) (rate(vane_rule_attempts_total{{{_OURS}}}{_RATE}))",
                    "rule",
                ),
                "{{rule}}",
            )
        ],
        width=12,
        low=0,
    ),
    Timeline(
        "Valves",
        "Open: the rule only scores, because it would refuse too many nodes or its data is suspect.",
        "none",
        [(or_none(f"max by (rule) (vane_rule_valve_open{{{_OURS}}})", "rule"), "{{rule}}")],
        width=12,
        states=[("refuses", "green"), ("only scores", "red")],
    ),
    Line(
        "Attempts covered",
        "Attempts per second of Pods that the rule's match covers. A rule that stays at 0 applies to no Pod.",
        "ops",
        [(or_none(f"sum by (rule) (rate(vane_rule_attempts_total{{{_OURS}}}{_RATE}))", "rule"), "{{rule}}")],
        width=12,
        low=0,
    ),
]

_TRIAL: Final[list[Panel]] = [
    Line(
        "Decisions that would change",
        "Of the decisions that a rule in shadow or a canary only watched: those that would have chosen another "
        "node, or none, if the rule acted.",
        "percentunit",
        [
            (
                or_none(
                    f"sum by (rule) (rate(vane_rule_shadow_changes_total{{{_OURS}}}{_RATE})) "
                    f"/ sum by (rule) (rate(vane_rule_shadow_attempts_total{{{_OURS}}}{_RATE}))",
                    "rule",
                ),
                "{{rule}}",
            )
        ],
        width=12,
        low=0,
    ),
    Line(
        "Nodes that would be refused per attempt",
        "Nodes that had passed all filters and that the rule would have refused, in an attempt that it only watched.",
        "none",
        [
            (
                or_none(
                    f"sum by (rule) (rate(vane_rule_shadow_refusals_total{{{_OURS}}}{_RATE})) "
                    f"/ sum by (rule) (rate(vane_rule_shadow_attempts_total{{{_OURS}}}{_RATE}))",
                    "rule",
                ),
                "{{rule}}",
            )
        ],
        width=12,
        low=0,
    ),
]

DASHBOARD: Final = Dashboard(
    "vane-rules",
    "Vane / Rules",
    "How do the rules affect placement?",
    [
        *replica_variables(),
        choice("rule", "Rule", f"label_values(vane_rule_attempts_total{{{OF_JOB}}}, rule)"),
    ],
    {"Now": _NOW, "Influence": _SAY, "Refusals": _REFUSALS, "Rules on trial": _TRIAL},
)
