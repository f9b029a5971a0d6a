"""Steps of lines that do not name their own, and steps that are missing."""
