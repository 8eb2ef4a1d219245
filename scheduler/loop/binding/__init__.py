"""The binding cycle: from a chosen node to a bound Pod, through Reserve, Permit, PreBind, Bind and PostBind.

Read `cycle` first, then `preparations` (Reserve and PreBind) and `plugin_runner`, which calls the plugins. Pods wait in
`waiting_pods` (at Permit) and `awaited_objects` (in PreBind).
"""
