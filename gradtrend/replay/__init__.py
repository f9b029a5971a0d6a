"""Re-runs a captured bad step. The only room that imports torch."""
