"""Scripts and tables to take away."""
