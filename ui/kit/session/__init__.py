"""What one visitor has chosen: between link, session and widgets."""
