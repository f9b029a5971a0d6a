"""Small models on one thread: on a busy machine several threads wait for one another longer than they compute."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
