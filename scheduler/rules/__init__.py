"""Rules over live signals, compiled: what each says of every node for a Pod. Pure."""
