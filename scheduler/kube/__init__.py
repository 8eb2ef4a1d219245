"""The API server: configuration and credentials, list and watch, leader election, and the binder process.

Read `reflector` first, then `watch_stream` and `resources` (what is listed, and how it is read); below them `transport`
(HTTP), `config` and `credentials` (where, and as whom).

`app` builds these objects; `loop` hands them binds and reports, and the deciding thread receives their messages.
Nothing here decides, and nothing here blocks its caller on the network.
"""
