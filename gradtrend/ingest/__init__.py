"""Files -> RunLog. One file an adapter; an adapter knows its format and nothing of roles, merging or judging."""
