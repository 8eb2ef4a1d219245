"""What `vane check --prometheus` does: settings in, each query asked once, what rules make of the answers out."""
