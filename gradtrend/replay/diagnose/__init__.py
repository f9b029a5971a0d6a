"""One step looked at layer by layer: gradients, activations, depth, the loss at the start, learning by heart."""
