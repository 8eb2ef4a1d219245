"""What a row plays in: servers behind proxies, replicas of Vane, and a churn beneath everything."""
