"""Runs of the step in variations: precisions, microbatches, samples, one module in float32."""
