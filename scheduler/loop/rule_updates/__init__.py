"""What answers to signals, new rule sets and passing time change: whom rules refuse, and whom that brings back."""
