"""The readings of one run -> its series: steps, roles, one table."""
