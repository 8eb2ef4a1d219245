"""An embedded Prometheus: a series store, a subset of PromQL, and the query API over HTTP.

Read `store` first, then `evaluate`, then `server`. The evaluator is pure: expression, samples and time in, numbers
out. What it answers is what a Prometheus answers on the same samples; what lies outside the subset it refuses by the
name of the syntax node, never guesses.
"""
