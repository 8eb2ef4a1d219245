"""SignalFilter and SignalScore: rules over live business signals, read from the snapshot.

Nothing here asks for a sample: the signal table is what the refresher published last, aligned to the rows. What a rule
says is in `rules/`; a missing sample is neither zero nor bad, each rule says what becomes of it.
"""

from __future__ import annotations

from scheduler.plugins.signals.signal_filter import SignalFilter
from scheduler.plugins.signals.signal_score import SignalScore

__all__ = ["SignalFilter", "SignalScore"]
