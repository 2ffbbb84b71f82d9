"""Studies: axes × tasks × seeds, from a small file, trained unattended, stored as the numbers come."""
