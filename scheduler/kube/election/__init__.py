"""Leader election by Lease: which of several replicas schedules, and until when."""
