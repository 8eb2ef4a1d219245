"""Why an expression is refused."""

from __future__ import annotations


class PromQLError(ValueError):
    """What Prometheus refuses too; `offset` is its place, in characters."""

    def __init__(self, problem: str, advice: str, offset: int) -> None:
        self.problem = problem
        self.advice = advice
        self.offset = offset
        super().__init__(problem)


class TooLargeError(PromQLError):
    """What Prometheus would read, but is beyond the bounds kept here."""
