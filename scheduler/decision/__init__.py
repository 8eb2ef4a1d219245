"""State in, decision out: the filter and score phases, dry runs of preemption, shadows and the record. Pure."""
