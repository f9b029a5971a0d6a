"""Many runs: found, judged here or elsewhere, remembered, and told in one line each.

`scan_all` is the job; a `State` is what an earlier scan knows, an engine is who does the work.
"""
