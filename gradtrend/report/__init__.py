"""Report -> str. One file a format."""
