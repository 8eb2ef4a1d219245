"""The binder: a process of its own that writes binds, Events and conditions, and our end of the connection to it.

Read `messages` first, what the two sides say to each other; then `client`, our side, and `process`, the other one, that
hands each request on: `binds`, `failure_reports`, `patches`, `evictions`, `event_writer`. They write through `http`;
binds, patches and evictions only until `fence` closes.
"""
