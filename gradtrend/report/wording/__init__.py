"""Words, numbers and escapes that the formats of reports share."""
