"""Which fits logs hold, and which logs are of one fit, by what stands in them."""
