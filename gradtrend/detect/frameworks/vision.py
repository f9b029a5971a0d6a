"""Images: frameworks and their options."""

from __future__ import annotations

from collections.abc import Mapping

from gradtrend.detect.frameworks.framework import Framework, framework

_MM = {
    "lower_lr": "optim_wrapper.optimizer.lr, or auto_scale_lr",
    "warm_up_longer": "param_scheduler LinearLR end=...",
    "clip_gradients": "optim_wrapper.clip_grad=dict(max_norm=35)",
    "clip_lower": "optim_wrapper.clip_grad.max_norm",
    "stabler_precision": "OptimWrapper in place of AmpOptimWrapper",
    "resume_earlier": "--resume",
    "log_more_often": "default_hooks.logger.interval",
}

VISION: Mapping[str, Framework] = {
    "lightly-train": framework(
        "LightlyTrain",
        lower_lr='model_args={"lr": ...}',
        raise_lr='model_args={"lr": ...}',
        warm_up_longer='model_args={"lr_warmup_steps": ...}',
        clip_gradients='model_args={"gradient_clip_val": 1.0}',
        clip_lower='model_args={"gradient_clip_val": ...}',
        stabler_precision='precision="bf16-mixed" or "32-true"',
        resume_earlier='model="out/.../exported_models/exported_best.pt" and a new out',
        re_run_to_reproduce="resume_interrupted=True",
        check_normalization='transform_args={"normalize": ...}',
        raise_batch="batch_size=..., gradient_accumulation_steps=...",
        locate_module='debug_args={"underflow_overflow": {"enabled": True}}',
        capture_and_replay='debug_args={"nancapture": {"enabled": True}}',
        log_more_often='logger_args={"log_every_num_steps": 1}',
        regularize_weights='model_args={"weight_decay": ...}',
    ),
    "detectron2": framework(
        "detectron2",
        "detection",
        lower_lr="SOLVER.BASE_LR",
        warm_up_longer="SOLVER.WARMUP_ITERS",
        clip_gradients="SOLVER.CLIP_GRADIENTS.ENABLED True",
        raise_batch="SOLVER.IMS_PER_BATCH",
        stabler_precision="SOLVER.AMP.ENABLED False",
    ),
    "maskrcnn-benchmark": framework(
        "maskrcnn-benchmark",
        "detection",
        lower_lr="SOLVER.BASE_LR",
        warm_up_longer="SOLVER.WARMUP_ITERS",
        raise_batch="SOLVER.IMS_PER_BATCH",
    ),
    "mmdet": framework("MMDetection", "detection", **_MM),
    "mmengine": framework("MMEngine", **_MM),
    "ultralytics": framework(
        "Ultralytics",
        "detection",
        lower_lr="lr0=...",
        warm_up_longer="warmup_epochs=...",
        stabler_precision="amp=False",
        raise_batch="batch=...",
    ),
    "yolov5": framework(
        "YOLOv5",
        "detection",
        lower_lr="lr0 in the hyp file",
        warm_up_longer="warmup_epochs in the hyp file",
        raise_batch="--batch-size",
    ),
    "yolact": framework("YOLACT", "detection", lower_lr="--lr", raise_batch="--batch_size"),
    "darknet": framework(
        "Darknet",
        "detection old",
        lower_lr="learning_rate in the cfg",
        warm_up_longer="burn_in in the cfg",
        raise_batch="batch and subdivisions in the cfg",
    ),
    "paddledetection": framework(
        "PaddleDetection",
        "detection",
        lower_lr="LearningRate.base_lr",
        warm_up_longer="LinearWarmup.steps",
        clip_gradients="OptimizerBuilder.clip_grad_by_norm",
    ),
    "tf-object-detection": framework(
        "the TensorFlow object detection API",
        "detection",
        lower_lr="learning_rate_base in pipeline.config",
        warm_up_longer="warmup_steps in pipeline.config",
        clip_gradients="gradient_clipping_by_norm in pipeline.config",
    ),
    "dinov2": framework(
        "DINOv2",
        "self-supervised",
        lower_lr="optim.base_lr",
        warm_up_longer="optim.warmup_epochs",
        clip_gradients="optim.clip_grad",
        check_loss_term="dino.koleo_loss_weight",
        raise_batch="train.batch_size_per_gpu",
    ),
    "timm": framework(
        "timm",
        lower_lr="--lr",
        warm_up_longer="--warmup-epochs",
        clip_gradients="--clip-grad 1.0",
        stabler_precision="--amp-dtype bfloat16",
    ),
    "torchvision": framework("the PyTorch reference scripts", lower_lr="--lr"),
    "diffusers": framework(
        "diffusers",
        "diffusion",
        lower_lr="--learning_rate",
        warm_up_longer="--lr_warmup_steps",
        clip_gradients="--max_grad_norm",
        stabler_precision="--mixed_precision bf16",
    ),
    "kohya": framework(
        "sd-scripts",
        "diffusion",
        lower_lr="--learning_rate",
        warm_up_longer="--lr_warmup_steps",
        clip_gradients="--max_grad_norm",
        stabler_precision="--mixed_precision bf16, --no_half_vae",
    ),
}
