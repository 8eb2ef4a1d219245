"""The API server: configuration and credentials, list and watch, and the binder process.

`app` builds these objects; `loop` hands them binds and reports, and the deciding thread receives their messages.
Nothing here decides, and nothing here blocks its caller on the network.
"""
