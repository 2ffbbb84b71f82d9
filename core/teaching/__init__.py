"""Teaching: claims of papers, lessons, classes."""
