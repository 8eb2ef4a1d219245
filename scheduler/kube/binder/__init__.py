"""The binder: a process of its own that writes binds, Events and conditions, and our end of the talk with it."""
