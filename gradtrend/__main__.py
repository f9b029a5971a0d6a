"""`python -m gradtrend`."""

from gradtrend.cli import main

main()
