"""RunLog + rules -> findings. Measures are pure functions; rules are the TOML files in `rules/`."""
