"""What is made of results for people who learn: claims of papers, lessons, classes."""
