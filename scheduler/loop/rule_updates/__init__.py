"""What new samples and new rule sets change: whom rules refuse now, and whom that brings back to the queue."""
