"""A diagnosed model is bit for bit as before: parameters, buffers, gradients, flags, hooks, attributes, generators."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import gradtrend
from tests.replay.diagnose.networks import Language, ResNet, classify, images, mlp, predict, tokens, vectors


def bits(tensor: Tensor | None) -> Any:
    if tensor is None:
        return None
    if tensor.is_sparse:
        return bits(tensor.coalesce().indices()), bits(tensor.coalesce().values())
    return (
        str(tensor.dtype),
        tuple(tensor.shape),
        tensor.detach().resolve_conj().contiguous().view(-1).view(torch.uint8).tolist(),
    )


def state_of(model: nn.Module) -> dict[str, Any]:
    """All that must stay, by value and by identity."""
    tensors = dict([*model.named_parameters(), *model.named_buffers()])
    return {
        "values": {name: bits(tensor) for name, tensor in tensors.items()},
        "places": {name: (id(t), None if t.is_sparse else t.data_ptr()) for name, t in tensors.items()},
        "gradients": {name: bits(p.grad) for name, p in model.named_parameters()},
        "gradient objects": {name: id(p.grad) for name, p in model.named_parameters() if p.grad is not None},
        "requires_grad": {name: p.requires_grad for name, p in model.named_parameters()},
        "training": [module.training for module in model.modules()],
        "hooks": [
            [list(v) for k, v in vars(module).items() if "hooks" in k and v is not None] for module in model.modules()
        ],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "parameter hooks": [list(p._post_accumulate_grad_hooks or {}) for p in model.parameters()],
        "python": random.getstate(),
        "numpy": repr(np.random.get_state()),
        "torch": bits(torch.get_rng_state()),
    }


def marked(model: nn.Module) -> nn.Module:
    """Some gradients (one NaN, one None), one frozen parameter, one part in evaluation mode, a hook."""
    parameters = list(model.parameters())
    for parameter in parameters[::2]:
        parameter.grad = torch.randn_like(parameter)
    assert parameters[0].grad is not None
    parameters[0].grad.view(-1)[0] = float("nan")
    with torch.no_grad():
        parameters[-1].view(-1)[0] = -0.0
    parameters[1].requires_grad_(False)
    next(iter(model.children())).eval()
    model.register_forward_hook(lambda module, args, output: None)
    return model


def dropping() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 10))


def drawing(model: nn.Module, batch: Any) -> Tensor:
    """A step that draws from all three generators."""
    return classify(model, batch) * (1 + random.random() + float(np.random.rand()) + torch.rand(()))


@pytest.mark.parametrize(
    ("make", "batch", "step"),
    [
        (dropping, vectors, drawing),
        (ResNet, images, classify),
        (lambda: Language(1, tied=True), tokens, predict),
        (lambda: dropping().double(), lambda: (torch.randn(8, 32).double(), torch.randint(0, 10, (8,))), classify),
        (lambda: mlp(2).to(torch.bfloat16), lambda: (vectors()[0].bfloat16(), vectors()[1]), classify),
    ],
)
def test_nothing_changes(make: Callable[[], nn.Module], batch: Callable[[], Any], step: Any) -> None:
    torch.manual_seed(0)
    model, given = marked(make()), batch()
    before, batch_before = state_of(model), [bits(part) for part in given]
    found = gradtrend.diagnose(model, given, step=step, overfit_steps=2)
    assert found.gradient_norm
    assert state_of(model) == before
    assert [bits(part) for part in given] == batch_before


def test_odd_buffers_stay() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(32, 10)
            self.register_buffer("graph", torch.eye(5).to_sparse())
            self.register_buffer("one_for_all", torch.arange(3.0).reshape(1, 3).expand(4, 3))
            self.register_buffer("none", None)
            self.register_buffer("nan", torch.tensor([float("nan"), -0.0]))
            self.register_buffer("complex", torch.tensor([1 + 2j]).conj())

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x)

    model, batch = Odd(), vectors()
    before = state_of(model)
    found = gradtrend.diagnose(model, batch, step=classify, overfit_steps=2)
    assert all(row.finite for row in found.precisions)
    assert state_of(model) == before


class Restless(nn.Module):
    """Writes wherever a module can write in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.register_buffer("seen", torch.zeros(3))
        self.calls, self.history, self.cache = 0, [1], {"a": 1}

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.history.append(self.calls)
        self.cache["b"] = 2
        self.last = x
        self.seen.add_(1)
        self.register_buffer("late", torch.ones(1))
        with torch.no_grad():
            self.linear.weight.mul_(0.5)
        self.linear.bias.requires_grad_(False)
        self.register_forward_hook(lambda module, args, output: None)
        self.eval()
        return self.linear(x).square().mean()


class Stopping(Restless):
    """Does the same and raises in the middle."""

    def forward(self, x: Tensor) -> Tensor:
        super().forward(x)
        raise ValueError("enough")


def test_a_model_that_writes_to_itself_is_put_back() -> None:
    model, batch = Restless(), torch.randn(5, 4)
    before = state_of(model)
    gradtrend.diagnose(model, batch)
    assert state_of(model) == before
    assert (model.calls, model.history, model.cache) == (0, [1], {"a": 1})


def test_so_is_one_that_raises_in_the_middle() -> None:
    model, batch = Stopping(), torch.randn(5, 4)
    before = state_of(model)
    with pytest.raises(gradtrend.ReplayError, match="ValueError: enough"):
        gradtrend.diagnose(model, batch)
    assert state_of(model) == before
    assert (model.calls, model.history, model.cache) == (0, [1], {"a": 1})


def test_so_is_one_that_is_interrupted() -> None:
    def step(model: nn.Module, batch: Tensor) -> Tensor:
        model(batch)
        raise KeyboardInterrupt

    model, given = dropping(), torch.randn(8, 32)
    before = state_of(model)
    with pytest.raises(KeyboardInterrupt):
        gradtrend.diagnose(model, given, step=step)
    assert state_of(model) == before


def test_an_optimizer_in_the_backward_pass_does_not_step() -> None:
    model, given, steps = mlp(1), vectors(), []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: steps.append(1))
    before = state_of(model)
    gradtrend.diagnose(model, given, step=classify, overfit_steps=0)
    assert not steps
    assert state_of(model) == before
    classify(model, given).backward()
    assert len(steps) == 4


def test_a_sparse_gradient_stays() -> None:
    model = nn.Embedding(10, 4, sparse=True)
    step = lambda module, batch: module(batch).square().mean()  # noqa: E731
    step(model, torch.tensor([1, 2])).backward()
    before = state_of(model)
    found = gradtrend.diagnose(model, torch.tensor([3, 3, 4]), step=step)
    assert state_of(model) == before
    (layer,) = found.layers
    assert layer.gradient is not None
    assert (layer.gradient.count, layer.gradient.zeros) == (40, 0.8)


def test_gradients_of_what_the_step_uses_beside_the_model_stay() -> None:
    scale = torch.tensor(2.0, requires_grad=True)
    other = torch.tensor(1.0, requires_grad=True)
    scale.grad = torch.tensor(7.0)
    gradtrend.diagnose(mlp(1), vectors(), step=lambda m, b: classify(m, b) * scale + other, overfit_steps=3)
    assert scale.grad == 7
    assert other.grad is None


def test_a_batch_that_wants_gradients_gets_none() -> None:
    batch = torch.randn(8, 32, requires_grad=True)
    found = gradtrend.diagnose(mlp(1), batch, step=lambda m, x: m(x).square().mean() + torch.autograd.grad(
        m(x).sum(), x, create_graph=True)[0].square().mean(), precisions=False)  # fmt: skip
    assert found.gradient_norm
    assert batch.grad is None


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_the_callers_mode_does_not_matter(context: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    model, batch = mlp(1), vectors()
    with context():
        found = gradtrend.diagnose(model, batch, step=classify)
        assert not torch.is_grad_enabled()
    assert found.gradient_norm == gradtrend.diagnose(model, batch, step=classify).gradient_norm


def test_it_is_deterministic() -> None:
    model, batch = dropping(), vectors()
    first, second = (gradtrend.diagnose(model, batch, step=drawing) for _ in range(2))
    assert first == second


def test_the_callers_autocast_is_the_precision() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        found = gradtrend.diagnose(mlp(1), vectors(), step=lambda m, b: functional.mse_loss(m(b[0]), b[0][:, :10]))
        assert torch.is_autocast_enabled("cpu")
    assert found.precision == "bfloat16"


class Remembering(nn.Module):
    """Keeps what no state dict holds: a generator, a tensor written to in place, a list in a dict, a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.noise = torch.Generator().manual_seed(3)
        self.memory = torch.zeros(3)
        self.held: dict[str, list[int]] = {"calls": [0]}
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.held["calls"][0] += 1
        self.memory.add_(1.0)
        noise = torch.rand(3, generator=self.noise)
        return self.net(x) / (self.calls < 2) + noise


def test_what_a_model_keeps_outside_its_state_dict_is_as_before_and_each_run_begins_with_it() -> None:
    model = Remembering()
    memory, held, state = model.memory, model.held, model.noise.get_state()
    found = gradtrend.diagnose(model, (torch.randn(6, 4), torch.arange(6) % 3), step=_classify, overfit_steps=0)
    assert all(row.finite for row in found.precisions)  # the second call in a row would divide by zero
    assert (model.calls, model.held, model.memory is memory, model.held is held) == (0, {"calls": [0]}, True, True)
    assert torch.equal(model.memory, torch.zeros(3))
    assert torch.equal(model.noise.get_state(), state)


def _classify(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])
