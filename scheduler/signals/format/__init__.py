"""The rule format: files in, a RuleSet or every mistake with its place out. Pure: no I/O, no clock, no thread."""
