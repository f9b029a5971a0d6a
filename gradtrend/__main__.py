"""`python -m gradtrend`."""

from gradtrend.cli import main

if __name__ == "__main__":  # not in the processes that `parallel` starts
    main()
