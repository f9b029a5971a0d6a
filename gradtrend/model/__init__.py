"""The words of gradtrend as frozen types; no input or output here."""
