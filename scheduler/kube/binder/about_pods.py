"""What requests about one Pod share: its path, and how answers about it are read."""

from __future__ import annotations

import re

from scheduler.kube.binder.http import Answer, NoAnswerError
from scheduler.kube.binder.messages import PodRef

# The precondition of a delete or an update, and the check that a patch leaves the UID alone.
_ABOUT_UID = re.compile(r"uid in precondition|metadata\.uid", re.IGNORECASE)


def pod_path(pod: PodRef) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def is_other_pod(answer: Answer) -> bool:
    """Return whether the UID in a patch was refused: a Pod of the same name was made since."""
    return answer.code in (409, 422) and _ABOUT_UID.search(answer.message) is not None


def text_of(failure: Answer | NoAnswerError) -> str:
    return f"{failure.code} {failure.message}" if isinstance(failure, Answer) else str(failure)
