"""Pictures with their JavaScript beside them."""
