"""What stands between a browser and the pages: the document that a page begins with, how much may be uploaded, what is hidden."""
