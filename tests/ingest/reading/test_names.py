"""What metrics are called in real frameworks, and what each name means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.reading.names import name_metric
from gradtrend.ingest.runs.series.roles import assign_roles
from gradtrend.model.words import Role

TOTALS = {
    "Lightning": ("grad_2.0_norm_total", "grad_2_norm_total", "grad_inf_norm_total", "train/grad_norm_step"),
    "HF and TRL": ("grad_norm", "train/grad_norm", "train_grad_norm"),
    "fairseq": ("gnorm", "train/gnorm", "train_inner/gnorm", "train_gnorm"),
    "Megatron": ("grad-norm", "grad norm", "grad_norm"),
    "DeepSpeed": ("global_grad_norm", "train/global_grad_norm", "Train/Samples/train_gradient_norm"),
    "mmengine": ("train/grad_norm", "grad_norm"),
    "verl": ("actor/grad_norm", "critic/grad_norm"),
    "torchtitan": ("grad_norm",),
    "OLMo": ("optim/total_grad_norm", "optim/total grad norm", "optim/grad_norm"),
    "Composer": ("l2_norm/grad/global",),
    "nanoGPT and llm.c": ("norm", "grad_norm", "train/norm"),
    "SB3 and CleanRL": ("losses/grad_norm", "train/grad_norm", "charts/grad_norm"),
    "RLlib": (
        "info/learner/default_policy/learner_stats/grad_gnorm",
        "learners/default_policy/gradients_default_optimizer_global_norm", "red_0/learner_stats/grad_gnorm",
        "ray/tune/learners/p0/gradients_default_optimizer_global_norm",
        "info/learner/agent_1/learner_stats/grad_gnorm", "info/learner/p7/grad_gnorm",
        "learners/agent_0/gradients_default_optimizer_global_norm", "learners/p_1/gradients_qf_global_norm",
    ),
    "rl_games and others in RL": (
        "info/grads/norm", "agent_grad_norm", "critic_grad_norm", "actor_opt_grad_norm", "qf1_grad_norm",
        "q1/grad_norm", "policy_0/grad_norm", "grad_norm/actor", "grad_norm_policy", "value_grad_norm",
    ),
    "GANs": ("G/grad_norm", "D/grad_norm", "grad_norm_g", "grad_norm_d", "generator/grad_norm", "disc_grad_norm"),
    "Keras and TensorFlow": ("gradient_norm", "gradients/global_norm", "global_norm", "Gradients/global_norm"),
    "MaxText and Flax": ("learning/grad_norm", "learning/raw_grad_norm", "global_norm/grads"),
    "Detectron2 and timm": ("total_norm", "grad_norm", "Train - Grad Norm"),
    "ESPnet and NeMo": ("train/grad_norm", "gradient_norm", "grad_norm/total"),
    "audiocraft and LightlyTrain": ("grad_norm", "gradient_norm", "train_gradient_norm"),
    "tutorials": (
        "Gradient Norm", "GradNorm", "gradNorm", "gradientNorm", "GRAD_NORM", "total_grad_norm", "grad/norm",
        "Gradients/Norm", "GradNorm/total", "grad_l2", "grad/l2", "grad_l2_norm", "l2_grad_norm", "Gradient L2 Norm",
        "l2 norm of gradients", "norm of the gradient", "norm_grad", "grad.norm", "gradient magnitude", "gn", "g_norm",
        "train/gradient norm (L2)", "total_gradient_norm", "grad_norm/global", "grad_norm/all", "grad_norm_avg",
        "grad_norm_value", "unscaled_grad_norm", "raw_grad_norm", "param_grad_norm", "perf/grad_norm",
        "rank0/grad_norm",
        "grad_norm_before_clip", "pre_clip_grad_norm", "unclipped_grad_norm", "grad_norm/pre_clip",
        "grad_norm (pre-clip)",
        "epoch/grad_norm", "Training/Gradient Norm", "metrics/grad_norm", "grad_norm_epoch",
    ),
}  # fmt: skip
LAYERS = {
    "grad_2.0_norm/model.net.0.bias": "model.net.0.bias",
    "grad_2.0_norm/model.encoder.layers.0.self_attn.in_proj_weight": "model.encoder.layers.0.self_attn.in_proj_weight",
    "l2_norm/grad/model.transformer.blocks.0.attn.Wqkv.weight": "model.transformer.blocks.0.attn.Wqkv.weight",
    "grad_norm/0_weight": "0_weight",
    "grad_norm/total/0_weight": "0_weight",
    "grad_norm_0_weight": "0_weight",
    "grad_norm/weight": "weight",
    "grad_norm/backbone": "backbone",
    "grad norm/encoder": "encoder",
    "grad_norm.layers.0": "layers.0",
    "grad_norm:conv1": "conv1",
    "grad_norm[fc]": "fc",
    "grad_norm(encoder)": "encoder",
    "grad norm (layer 3)": "layer 3",
    "grad_norm/blocks[0]": "blocks[0]",
    "grad_norm/convLayer1": "convLayer1",
    "grad_norm/Dense - 1": "Dense - 1",
    "grad_norm/blocks.0.norm2.weight": "blocks.0.norm2.weight",
    "grad_norm_layer0": "layer0",
    "grad_norms/lm_head.weight": "lm_head.weight",
    "gradient_norm/dense_1": "dense_1",
    "layers.0.grad_norm": "layers.0",
    "layer_0/grad_norm": "layer_0",
    "train/layer_0/grad_norm": "layer_0",
    "blocks/3/attn/grad_norm": "blocks/3/attn",
    "blocks[3].grad_norm": "blocks[3]",
    "fc1.weight/grad/norm": "fc1.weight",
    "fc1.weight_grad_norm": "fc1.weight",
    "gradients/fc1.weight/norm": "fc1.weight",
    "gradients/fc1.weight_norm": "fc1.weight",
    "grads/encoder/l2": "encoder",
    "actor/grad_norm/layers.0": "layers.0",
    "rank0/layer_3/grad_norm": "rank0/layer_3",
    "learner/layer_2/grad_norm": "learner/layer_2",
}
NOT_THE_NORM = (
    "max_grad_norm", "max_gradient_norm", "grad_norm_clip", "grad_clip", "grad_clip_norm", "clip_grad_norm",
    "clip_norm",
    "gradient_clip_val", "gradient_clip_norm", "grad_norm_clip_value", "grad_norm_threshold", "grad_norm_limit",
    "grad_norm_ratio", "grad_norm_std", "grad_norm/std", "grad_norm_var", "grad_norm_penalty", "gradient_penalty",
    "grad_norm_time", "grad_norm_spike", "grad_norm_is_nan", "is_grad_norm_finite", "grad_norm_inf_count",
    "grad_norm_nonfinite", "num_grad_norm_spikes", "log_grad_norm", "log10_grad_norm", "grad_norm_log",
    "grad_norm_per_token", "update_norm", "global_norm/updates", "grad_noise_scale", "gradient_noise_scale",
    "gradient_accumulation_steps", "grad_cosine", "grad_mean", "grad_max", "layer_norm", "batch_norm", "clip",
    "train/clip",
    "l2_norm/moment/model.0.weight", "l2_norm/update/model.0.weight", "val/grad_norm", "eval/grad_norm", "gnorm_clip",
    "config/grad_norm", "hparams/gradient_norm", "grade", "grad_accum", "grad_time", "gradients/histogram",
    "num_grad_updates_lifetime", "gradient_std", "gradient_max", "mean_gradient", "mean_grad", "std_grad",
    "grad-norm vs samples", "target_grad_norm", "grad_overflow", "num-zeros", "optim/clipping_rate",
)  # fmt: skip
PARAMETER_NORMS = (
    "param_norm", "params-norm", "params norm", "weight_norm", "optim/param_norm", "learning/param_norm",
    "l2_norm/param/model.0", "param_global_norm", "parameter_norm", "global_norm/params", "weights_norm",
)  # fmt: skip
LOSSES = (
    "loss", "Loss", "train/loss", "train_loss", "Train Loss", "training_loss", "Loss/train", "loss (train)", "lm loss",
    "lm-loss", "Train/Samples/train_loss", "train/CE loss", "train/CrossEntropyLoss", "loss_metrics/global_avg_loss",
    "loss/train/total", "metrics/train/LanguageCrossEntropy", "losses/value_loss", "losses/a_loss", "total_loss",
    "loss_rpn_cls", "reduced_train_loss", "nll_loss", "batch_loss", "train_loss_step", "actor/pg_loss", "learning/loss",
    "train/policy_gradient_loss", "mse", "cost", "train/cost", "g_loss", "loss_D_real",
    "Loss [nats]", "loss (bits)",
)  # fmt: skip
NOT_THE_LOSS = (
    "val_loss", "eval_loss", "Validation Loss", "lm loss validation", "loss/val", "dev/loss", "test_loss", "best_loss",
    "loss_weight", "loss_is_nan", "loss_count", "objective/kl", "loss_z_score", "lossless_ratio", "lm loss vs samples",
    "loss_mask", "loss_nan_count", "entropy", "rewards/margins", "ppl",
)  # fmt: skip
RATES = (
    "lr", "LR", "learning_rate", "learning rate", "learning-rate", "LearningRate", "train/learning_rate", "optim/LR",
    "charts/learning_rate", "Train/Samples/lr", "lr-AdamW", "lr-DecoupledAdamW/group0", "lr-SGD/params_no_weight_decay",
    "optim/learning_rate_group0", "optim/LR (group 0)", "optim0_lr0", "info/last_lr", "base_lr", "lr_0", "lr/group_0",
    "actor/lr", "epoch_learning_rate", "current_lr",
)  # fmt: skip
NOT_THE_RATE = (
    "min_lr", "max_lr", "initial_lr", "lr_scale", "lr_mult", "lr_decay", "lr_warmup_steps", "lr_schedule",
    "config/lr", "lr-AdamW/pg1-momentum", "lr-AdamW-weight_decay", "learning-rate vs samples",
)  # fmt: skip
LOSS_SCALES = (
    "loss_scale", "loss-scale", "loss scale", "loss/scale", "train/loss_scale", "Train/Samples/loss_scale",
    "grad_scale",
    "amp_scale", "scaler/scale", "loss_scaler", "fp16/loss_scale", "scale", "train/scale", "dynamic_loss_scale",
)  # fmt: skip
PRIMARY = [
    *((name, Role.GRAD_NORM) for names in TOTALS.values() for name in names),
    *((name, Role.GRAD_NORM) for name in LAYERS),
    *((name, Role.OTHER) for name in (*NOT_THE_NORM, *NOT_THE_LOSS, *NOT_THE_RATE)),
    *((name, Role.PARAM_NORM) for name in PARAMETER_NORMS),
    *((name, Role.LOSS) for name in LOSSES),
    *((name, Role.LR) for name in RATES),
    *((name, Role.LOSS_SCALE) for name in LOSS_SCALES),
]


@pytest.mark.parametrize(("name", "role"), PRIMARY)
def test_the_role_of_a_name(name: str, role: Role) -> None:
    assert name_metric(name).role is role


@pytest.mark.parametrize("framework", TOTALS)
def test_totals_belong_to_no_layer(framework: str) -> None:
    assert {name: name_metric(name).layer for name in TOTALS[framework]} == dict.fromkeys(TOTALS[framework])


@pytest.mark.parametrize(("name", "layer"), LAYERS.items())
def test_layers_are_given_verbatim(name: str, layer: str) -> None:
    naming = name_metric(name)
    assert (naming.layer, naming.squared, naming.clipped) == (layer, False, False)
    assert layer in naming.why


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("grad_norm_square", None),
        ("grad_norm_squared", None),
        ("squared_grad_norm", None),
        ("grad_sq_norm", None),
        ("grad_norm_sq/fc", "fc"),
    ],
)
def test_squared(name: str, layer: str | None) -> None:
    naming = name_metric(name)
    assert (naming.role, naming.squared, naming.layer) == (Role.GRAD_NORM, True, layer)


@pytest.mark.parametrize(
    "name",
    [
        "clipped_grad_norm",
        "grad_norm_clipped",
        "grad_norm/post_clip",
        "post_clip_grad_norm",
        "grad_norm_after_clipping",
    ],
)
@pytest.mark.parametrize("twin", ["grad_norm", "grad_norm/pre_clip", "train/grad_norm_unclipped"])
def test_the_unclipped_twin_is_preferred(name: str, twin: str) -> None:
    alone = assign_roles([name])[name]
    assert (alone.role, alone.layer, alone.clipped) == (Role.GRAD_NORM, None, True)
    both = assign_roles([name, twin])
    assert [both[name].role, both[twin].role] == [Role.OTHER, Role.GRAD_NORM]
    assert "clip" in both[name].why


@pytest.mark.parametrize("name", ["grad_norm/max", "grad_norm_ema", "norm"])
def test_second_best_only_where_the_norm_itself_is_missing(name: str) -> None:
    assert assign_roles([name, "loss"])[name].role is Role.GRAD_NORM
    assert assign_roles([name, "train/grad_norm"])[name].role is Role.OTHER


def test_actor_and_critic_are_a_series_each() -> None:
    roles = assign_roles(["actor/grad_norm", "critic/grad_norm", "actor/pg_loss", "critic/vf_loss", "actor/entropy"])
    assert [name for name, naming in roles.items() if naming.role is Role.GRAD_NORM] == [
        "actor/grad_norm", "critic/grad_norm",
    ]  # fmt: skip
    assert [name for name, naming in roles.items() if naming.role is Role.LOSS] == ["actor/pg_loss", "critic/vf_loss"]


def test_the_user_overrides() -> None:
    names = ["grad_norm", "grad_norm/fc1", "my_norm", "loss", "my_loss_scale", "lr", "eta"]
    roles = assign_roles(names, metric="my_norm", loss="my_loss_scale", lr="eta")
    assert {name: naming.role for name, naming in roles.items()} == {
        "grad_norm": Role.OTHER, "grad_norm/fc1": Role.GRAD_NORM, "my_norm": Role.GRAD_NORM, "loss": Role.OTHER,
        "my_loss_scale": Role.LOSS, "lr": Role.OTHER, "eta": Role.LR,
    }  # fmt: skip
    assert roles["grad_norm/fc1"].layer == "fc1"
    assert roles["my_norm"].why == "chosen by the user"
    chosen_layer = assign_roles(["grad_norm/fc1", "grad_norm/fc2"], metric="grad_norm/fc1")
    assert [naming.layer for naming in chosen_layer.values()] == [None, "fc2"]


def test_there_are_many() -> None:
    assert len(PRIMARY) > 230


@given(st.sampled_from(PRIMARY), st.sampled_from(["train/", "Train/", "training.", "train_"]))
def test_a_training_prefix_changes_neither_role_nor_layer(named: tuple[str, Role], prefix: str) -> None:
    name, role = named
    naming = name_metric(prefix + name)
    assert (naming.role, naming.layer) == (role, name_metric(name).layer)
    assert naming.quantity == name_metric(name).quantity


@given(st.sampled_from(PRIMARY), st.sampled_from("_- "), st.sampled_from([str.lower, str.upper, str.title, str]))
def test_neither_case_nor_word_separators_change_the_role(
    named: tuple[str, Role], separator: str, case: object
) -> None:
    name, role = named
    if not name.islower() and not name.isupper():  # humps stand for separators: `GradNorm`
        return
    assert callable(case)
    varied = case(name.replace("_", separator).replace(" ", separator))
    assert name_metric(varied).role is role
    assert name_metric(varied).quantity == name_metric(name).quantity


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_name_is_named_and_a_layer_is_a_piece_of_it(before: str, after: str) -> None:
    for name in (before, f"grad_norm/{after}", f"{before}.grad_norm", f"gradients/{before}/norm"):
        layer = name_metric(name).layer
        assert layer is None or layer in name
