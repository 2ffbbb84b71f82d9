"""Database of studies."""
