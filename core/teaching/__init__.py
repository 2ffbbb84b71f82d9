"""What is made of results for those who learn: claims of papers, lessons, and classes that take them together."""
