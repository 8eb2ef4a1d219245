"""Leader election as the rest of the process sees it: the term goes to the binder, the news to the deciding thread."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.kube.binder.client import BinderClient
from scheduler.kube.binder.messages import LeaseUntil
from scheduler.kube.election.roll_call import RollCall
from scheduler.kube.election.settings import ElectionSettings
from scheduler.loop.messages import Inbox, Led
from scheduler.settings.settings import LeaderElectionSettings


class ElectionReports:
    """The ElectionObserver. Losing the lease is told to `failed`: the process must end."""

    def __init__(self, binder: BinderClient, inbox: Inbox, failed: Callable[[str], None]) -> None:
        self._binder = binder
        self._inbox = inbox
        self._failed = failed

    def on_term(self, term: LeaseUntil) -> None:
        self._binder.set_term(term)

    def on_leading(self, roll_call: RollCall) -> None:
        self._inbox.put(Led(roll_call))

    def on_lost(self, reason: str) -> None:
        self._failed(reason)


def election_settings(settings: LeaderElectionSettings) -> ElectionSettings:
    """Return what the elector needs of the user's settings, which have been validated."""
    return ElectionSettings(
        lease_duration_s=settings.lease_duration_s,
        renew_deadline_s=settings.renew_deadline_s,
        retry_period_s=settings.retry_period_s,
        name=settings.resource_name,
        namespace=settings.resource_namespace,
    )
