"""Studies: axes × tasks × seeds from a small file, trained unattended, stored as they come."""
