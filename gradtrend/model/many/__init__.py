"""Many runs: what is kept of each, which are looked at first, what tells the sick from the healthy."""
