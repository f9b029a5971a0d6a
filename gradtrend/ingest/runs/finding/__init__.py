"""A path -> the logs below it, and the stored runs among them, in shares that are read together."""
