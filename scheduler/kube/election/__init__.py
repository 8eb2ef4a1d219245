"""Leader election by Lease: which of several replicas schedules, and until when.

Read `elector` first; then `standby` (what a replica does that does not lead), `leadership` (until when we lead),
`lease` (the object) and `roll_call` (which Pods were pending when we began to lead).
"""
