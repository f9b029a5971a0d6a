"""The captured step, ready to run: model, batch, random state, precision."""
