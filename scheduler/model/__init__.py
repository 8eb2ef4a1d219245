"""Plain data: API objects, columns of nodes and signals, rules, snapshots. No I/O, no clock, no thread."""
