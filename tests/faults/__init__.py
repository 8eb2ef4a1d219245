"""The fault bench: real servers behind fault proxies, two replicas of Vane, and a checker that believes neither."""
