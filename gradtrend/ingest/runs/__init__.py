"""Which logs are one run: finding them, joining their series, giving these their roles."""
