"""Rule files in, signal columns out: the format and its linter, the Prometheus client, the refresher, the TTL store.

`app` and `cli` read rule files here, `loop` takes finished columns from the store. The format is pure: it gets
bytes and gives a RuleSet. Nothing here decides about a Pod or touches the cluster, and no plugin imports it.
"""
