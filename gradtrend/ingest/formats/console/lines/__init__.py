"""One line of console text -> what it logged."""
