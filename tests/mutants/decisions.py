"""Faults in what is decided: in plugins, rules and the phases of a decision."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_PLUGINS = (
    Mutant(
        bug="a Pod that fills a node exactly finds no room",
        path="plugins/node_resources_fit.py",
        old="short = allocatable - nodes.requested[index][rows] < amount",
        new="short = allocatable - nodes.requested[index][rows] <= amount",
        tests=("plugins/test_node_resources.py", "conformance/test_vectors.py"),
    ),
    Mutant(
        bug="one Pod more than allowed fits on a node",
        path="plugins/node_resources_fit.py",
        old="crowded = nodes.n_pods[rows] >= nodes.allocatable[pods][rows]",
        new="crowded = nodes.n_pods[rows] > nodes.allocatable[pods][rows]",
        tests=("plugins/test_node_resources.py", "conformance/test_vectors.py"),
    ),
    Mutant(
        bug="a toleration without a key covers every value",
        path="plugins/shared/eligible_nodes.py",
        old="        return toleration.value == taint.value\n",
        new="        return not toleration.key or toleration.value == taint.value\n",
        tests=("plugins/test_taints.py", "conformance/test_vectors.py"),
    ),
    Mutant(
        bug="the fullest domain scores 0, however little it differs",
        path="plugins/pod_topology_spread/plugin.py",
        old="MAX_NODE_SCORE * (most + least - raw) // most",
        new="MAX_NODE_SCORE * (most - raw) // most",
        tests=("plugins/pod_topology_spread", "conformance/test_vectors.py"),
    ),
    Mutant(
        bug="a Pod that is one too many for the skew is let in",
        path="plugins/pod_topology_spread/plugin.py",
        old="        skews: IntArray = counts + (int(self.matches_itself) - fewest)\n",
        new="        skews: IntArray = counts - fewest\n",
        tests=("plugins/pod_topology_spread", "conformance/test_vectors.py"),
    ),
    Mutant(
        bug="Pods of the same priority are preempted",
        path="plugins/default_preemption/plugin.py",
        old="if one.priority < priority]",
        new="if one.priority <= priority]",
        tests=("plugins/default_preemption", "conformance/test_vectors.py"),
    ),
    Mutant(
        bug="a budget that allows one disruption more is not reached",
        path="plugins/default_preemption/disruption_budgets.py",
        old="            if n_left < 0:\n",
        new="            if n_left < -1:\n",
        tests=("plugins/default_preemption", "conformance/test_vectors.py"),
    ),
)

_RULES = (
    Mutant(
        bug="a rule may weigh its share of all with itself counted twice",
        path="decision/share_cap.py",
        old="_capped(weight, share, whole - weight)",
        new="_capped(weight, share, whole)",
        tests=("decision/test_share_cap.py",),
    ),
    Mutant(
        bug="a Pod that does not run yet counts for ever",
        path="rules/pending_load.py",
        old="            return SHARES if self.as_of_s < bound_s + NOT_RUNNING_S else 0\n",
        new="            return SHARES\n",
        tests=("rules/test_pending_load.py",),
    ),
    Mutant(
        bug="a Pod that leaves takes its pending load twice",
        path="rules/pending_load.py",
        old="        self._add(before, row, -1)\n        self._add(pod, row, 1)\n",
        new="        self._add(pod, row, 1)\n",
        tests=("rules/test_pending_load.py",),
    ),
    Mutant(
        bug="sums of the pending load outlive the samples they were made for",
        path="rules/pending_load.py",
        old="        if known is not question or sums is None:\n",
        new="        if sums is None:\n",
        tests=("rules/test_pending_load.py",),
    ),
)

_DECISION = (
    Mutant(
        bug="among equal nodes the first one is taken",
        path="decision/score_phase.py",
        old="    return int(best[np.argmin(lots)]), best\n",
        new="    return int(best[0]), best\n",
        tests=("decision/test_decide.py",),
    ),
    Mutant(
        bug="scores with fractions are cut off, not rounded",
        path="decision/score_phase.py",
        old="np.rint(values * (THOUSANDTHS * weight)).astype(np.int64)",
        new="(values * (THOUSANDTHS * weight)).astype(np.int64)",
        tests=("decision/test_decide.py", "decision/test_record.py"),
    ),
    Mutant(
        bug="a Pod goes to the node it was promised though it fits there no more",
        path="decision/filter_phase.py",
        old="if nominee is not None and standing[nominee] and _passes(run, nominee, found):",
        new="if nominee is not None and standing[nominee]:",
        tests=("decision/test_decide.py",),
    ),
    Mutant(
        bug="a victim that need not go is not put back",
        path="decision/dry_run.py",
        old="            emptying.move(turn, too_many, -1)\n",
        new="",
        tests=("decision/test_dry_run.py", "plugins/default_preemption"),
    ),
)

IN_DECISIONS = (*_PLUGINS, *_RULES, *_DECISION)
