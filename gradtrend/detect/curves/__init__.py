"""What the series of a run look like: levels, rises and falls, spikes, warm-up, non-finite values."""
