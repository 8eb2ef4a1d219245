"""What the API server's audit log and watch say of a run; nothing here asks Vane."""
