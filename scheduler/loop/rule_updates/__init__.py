"""What answers, new rule sets and passing time change: what rules refuse, and which Pods that brings back."""
