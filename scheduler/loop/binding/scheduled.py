"""What is counted when a Pod is bound."""

from __future__ import annotations

from scheduler.loop.attempt import Attempt
from scheduler.metrics import Metrics

_MANY_ATTEMPTS = 15


def count_scheduled(metrics: Metrics, attempt: Attempt, now_s: float) -> None:
    """Count the attempt, its time, and the Pod's time and attempts since it came to the queue."""
    entity = attempt.entity
    metrics.schedule_attempts(attempt.scheduler_name, "scheduled").inc()
    metrics.scheduling_attempt_duration(attempt.scheduler_name, "scheduled").observe(now_s - attempt.began_s)
    metrics.pod_scheduling_attempts().observe(entity.attempts)
    attempts = str(entity.attempts) if entity.attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
    waiting_since_s = entity.first_seen_s if entity.first_active_s is None else entity.first_active_s
    metrics.pod_scheduling_sli_duration(attempts).observe(now_s - waiting_since_s)
    if entity.was_flushed:
        metrics.pod_scheduled_after_flush().inc()
