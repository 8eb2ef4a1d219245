"""The contract between plugins and those who run them: extension points, Status, events, instructions, profile."""
