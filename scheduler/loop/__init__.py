"""The only code that changes the world: the scheduling cycle, the binding cycle, what to do with messages.

Read `cycle` first; then `binding/`, or `failure` and `preemptions` for a Pod that was refused. `scheduler` is the
thread's life: messages in, one cycle after the other. `rule_updates/` and `pages/` do what some messages ask for.

Called by `app` on the deciding thread, which alone owns cache, queue and signals. Nothing here waits for a
network: what must be written goes to the binder process, what was read arrives in the inbox.
"""
