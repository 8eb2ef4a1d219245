"""What a user configures: flags, environment and the configuration file, read strictly into one Settings."""
