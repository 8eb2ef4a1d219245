"""The live world: cache (assume, confirm, forget), scheduling queue, event router.

`loop` calls it, always on the deciding thread, which alone owns everything here: no locks, no clock, no I/O.
Time comes as an argument, in monotonic seconds.
"""
