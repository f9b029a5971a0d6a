"""Reports for programs that run checks: test results, code scanning, annotations, comments."""
