"""YAML with the place of every value, all problems at once, and "did you mean". Pure."""
