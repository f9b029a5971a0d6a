"""How a run was set up."""
