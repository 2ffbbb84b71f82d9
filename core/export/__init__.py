"""What can be taken away: scripts and tables."""
