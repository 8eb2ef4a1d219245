"""SignalFilter and SignalScore: rules over live business signals, read from the snapshot.

Nothing here asks for a sample: the signal table is what the refresher published last, aligned to the rows.
A missing sample is neither zero nor bad; each rule says what becomes of it.
"""

from __future__ import annotations

from scheduler.plugins.signals.signal_filter import SignalFilter
from scheduler.plugins.signals.signal_score import SignalScore, rule_scores, rule_weight, scores_of

__all__ = ["SignalFilter", "SignalScore", "rule_scores", "rule_weight", "scores_of"]
