"""Reports for programs. `schema.json` in the folder above is the contract."""
