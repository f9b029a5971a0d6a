"""Reports for a person at a terminal, one file a document."""
