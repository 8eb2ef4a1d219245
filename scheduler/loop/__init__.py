"""The only code that changes the world: the scheduling cycle, the binding cycle, what to do with messages.

Called by `app` on the deciding thread, which alone owns cache, queue and signals. Nothing here waits for a
network: what must be written goes to the binder process, what was read arrives in the inbox.
"""
