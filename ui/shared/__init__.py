"""Views that several pages share."""
