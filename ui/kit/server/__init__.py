"""What stands between a browser and the pages: the document that a page begins with, and how much may be uploaded."""
