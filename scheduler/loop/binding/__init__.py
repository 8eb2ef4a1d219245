"""The binding cycle: from a chosen node to a bound Pod, by Reserve, Permit, PreBind, Bind and PostBind."""
