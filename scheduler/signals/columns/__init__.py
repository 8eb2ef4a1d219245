"""Answers kept for their time and turned into columns, trip bits and valves. Runs in the deciding process."""
