"""The live world: cache (assume, confirm, forget), scheduling queue, event router.

Read `router` first, then `cache` (with `assumed` and `nominator`) and `queue`, which keeps a Pod in one of
`heap` (active), `backoff`, `waiting_pool` or `inflight`, and asks the plugins through `queue_plugins`.

`loop` calls it, always on the deciding thread, which alone owns everything here: no locks, no clock, no I/O.
Time comes as an argument, in monotonic seconds.
"""
