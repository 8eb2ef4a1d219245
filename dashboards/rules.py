"""What the rules do to placement: how much say they have, whom they turn away, whether they tell nodes apart."""

from __future__ import annotations

from typing import Final

from dashboards.panels import Dashboard, Line, Panel, Stat, Timeline, choice, leading, or_none, replica_variables

_RATE: Final = "[$__rate_interval]"
_OURS: Final = '<vane>, rule=~"$rule"'
_HELD_BACK: Final = leading('scheduler_unschedulable_pods{<vane>, plugin="SignalFilter"}')

_NOW: Final[list[Panel]] = [
    Stat("Rules", "Rules in force.", "none", [("max(vane_rules_loaded{<vane>})", "rules")], width=4),
    Stat(
        "Last reload",
        "1: every replica could load the rule files as they are now. 0: one refused them, and the previous rules stay.",
        "none",
        [("min(vane_rules_last_reload_successful{<vane>})", "loaded")],
        width=4,
        steps=[(None, "red"), (1, "green")],
    ),
    Stat(
        "Rules since",
        "When the rules in force were loaded, by the replica that did so last.",
        "dateTimeFromNow",
        [("max(vane_rules_last_reload_success_timestamp_seconds{<vane>}) * 1000", "loaded")],
        width=4,
    ),
    Stat(
        "Nodes refused",
        "Nodes that the rule which refuses most refuses now.",
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
        "Pods that wait because rules refused the last nodes that could have taken them.",
        "none",
        [(f"sum({_HELD_BACK}) or vector(0)", "Pods")],
        width=4,
        steps=[(None, "green"), (1, "red")],
    ),
]

_SAY: Final[list[Panel]] = [
    Line(
        "Share of the weights",
        "The rule's weight as part of all that scored, plugins and rules, in the last decision that it took part in.",
        "percentunit",
        [(f"max by (rule) (vane_rule_weight_share_ratio{{{_OURS}}})", "{{rule}}")],
        low=0,
    ),
    Line(
        "Weight",
        "The weight now: what the file says, or what the rule's weight signal makes of it.",
        "none",
        [(f"max by (rule) (vane_rule_weight{{{_OURS}}})", "{{rule}}")],
        low=0,
    ),
    Line(
        "Spread of the scores",
        "Highest less lowest score, 0 to 100, that the rule gives to a node now. At 0 it prefers no node to another.",
        "none",
        [(f"max by (rule) (vane_rule_score_spread{{{_OURS}}})", "{{rule}}")],
        low=0,
        high=100,
    ),
]

_REFUSALS: Final[list[Panel]] = [
    Line(
        "Nodes refused now",
        "Nodes whose sample is beyond the rule's limits, or was and is not clear of them yet.",
        "none",
        [(or_none(f"max by (rule) (vane_rule_refused_nodes{{{_OURS}}})", "rule"), "{{rule}}")],
        width=12,
        low=0,
    ),
    Line(
        "Nodes turned away per attempt",
        "Nodes that the rule turned away in an attempt of a Pod that it covers, of those that no earlier filter had.",
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
        "Open: the rule only scores, as it would refuse too many nodes or its data is suspect.",
        "none",
        [(or_none(f"max by (rule) (vane_rule_valve_open{{{_OURS}}})", "rule"), "{{rule}}")],
        width=12,
        states=[("refuses", "green"), ("only scores", "red")],
    ),
    Line(
        "Attempts covered",
        "Attempts per second of Pods that the rule's match covers. A rule that stays at 0 concerns nobody.",
        "ops",
        [(or_none(f"sum by (rule) (rate(vane_rule_attempts_total{{{_OURS}}}{_RATE}))", "rule"), "{{rule}}")],
        width=12,
        low=0,
    ),
]

_TRIAL: Final[list[Panel]] = [
    Line(
        "Decisions that would change",
        "Of the decisions that a rule in shadow or a canary only watched: those that would have fallen on another "
        "node, or on none, had it acted.",
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
        "Nodes that would be turned away per attempt",
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
    "What do the rules do to placement?",
    [
        *replica_variables(),
        choice("rule", "Rule", 'label_values(vane_rule_attempts_total{namespace=~"$namespace", job=~"$job"}, rule)'),
    ],
    {"Now": _NOW, "How much say": _SAY, "Refusals": _REFUSALS, "Rules on trial": _TRIAL},
)
