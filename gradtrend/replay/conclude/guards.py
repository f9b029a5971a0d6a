"""What keeps an operator away from where it has no value, or no slope: by the name it has in torch."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.model.replay import Origin

# In the forward pass: names of operators -> what to do.
_FORWARD: Mapping[str, str] = {
    "log log2 log10": "keep its input above zero: log(x + eps), x.clamp(min=eps), or a loss that takes logits",
    "log1p": "keep its input above -1",
    "exp expm1 cosh sinh": "bound its input from above (x.clamp(max=...)), or subtract the maximum first",
    "sqrt": "keep its input at zero or above: x.clamp(min=0), and add an epsilon for the slope",
    "rsqrt reciprocal div true_divide remainder fmod": "keep the divisor away from zero: add an epsilon",
    "pow": "keep its base away from zero for negative exponents, and at zero or above for fractions",
    "acos asin atanh acosh": "clamp its input inside the domain: x.clamp(-1 + eps, 1 - eps)",
    "softmax log_softmax": "look for a row that is masked whole: leave one entry open, or skip such rows",
    "logsumexp logcumsumexp": "look for a row that is -inf throughout",
    "scaled_dot_product attention": "look for a query whose keys are all masked",
    "nll_loss cross_entropy": "look for a batch whose targets are all ignored, which has nothing to average over",
    "batch_norm": "look at its variance: one value alone has none, and a running variance below zero has no root",
    "var std": "one value alone has no deviation: use correction=0, or leave such groups out",
    "mean nanmean": "look for an empty selection: the mean of nothing is NaN",
    "norm vector_norm cdist": "look at the size of its input: a norm squares it",
    "mul mm bmm addmm matmul addcmul einsum": "look for a factor that is inf, or so large that the product is",
    "sub add sum cumsum": "look for inf - inf, or for a sum beyond the largest number",
    "linalg cholesky inverse svd eigh slogdet det": "the matrix is singular, or nearly so: add eps to its diagonal",
    "ctc_loss": "a target that is longer than its input has no path: set zero_infinity=True, or leave it out",
    "lgamma digamma gamma": "keep its input above zero",
    "binary_cross_entropy kl_div xlogy": "keep the probabilities inside (0, 1), or use the form that takes logits",
}
# In the backward pass: the operator whose slope it is.
_BACKWARD: Mapping[str, str] = {
    "sqrt rsqrt": "its slope is infinite at zero: sqrt(x + eps)",
    "norm cdist dist": "its slope has no direction at zero: add an epsilon under the root, or leave zero vectors out",
    "pow": "its slope is infinite at zero for exponents below one: (x + eps) ** p",
    "acos asin atanh": "its slope is infinite at 1 and -1: x.clamp(-1 + eps, 1 - eps)",
    "log": "its slope is infinite at zero: log(x + eps)",
    "div reciprocal": "its slope is infinite where the divisor is zero: add an epsilon",
    "std var": "its slope is infinite where all values are equal: add an epsilon to the variance",
    "svd eigh eig qr": "its slope is infinite where two singular values or eigenvalues are equal: add small noise",
    "prod cumprod": "its slope divides by the factors: keep them away from zero",
    "exp": "bound its input from above",
}


def guard_for(origin: Origin) -> str | None:
    """What to do about the operator that made the first bad value; None for one of which nothing is known."""
    if origin.phase == "backward":
        forward = origin.operator.partition("(backward of ")[2].rstrip(")")
        return _found(_BACKWARD, forward) if forward else None
    return _found(_FORWARD, origin.operator)


def _found(table: Mapping[str, str], operator: str) -> str | None:
    name = operator.strip("_").removesuffix("_backward")
    exact = next((text for names, text in table.items() if name in names.split()), None)
    parts = (text for names, text in table.items() if any(len(part) > 3 and part in name for part in names.split()))
    return exact or next(parts, None)
