"""Asking Prometheus: the client, the timetable, from series to answers by node. Runs in the refresher process."""
