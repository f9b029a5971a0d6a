"""The report as one page that needs no network: `report.py` makes it, `page/` is its script and style."""
