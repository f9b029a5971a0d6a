"""Settings from the files of a run folder: hparams.yaml, train.log, trainer_state.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradtrend.ingest.settings import folder
from gradtrend.ingest.settings.folder import settings_of
from gradtrend.model.runlog import Settings
from tests.places import EXPLODING, LIGHTLY

SPARSE = Settings("lightly-train", "32-true", 0.001, 125, 3.0, 8, 2)


@pytest.mark.parametrize("kept", ["hparams.yaml", "train.log"])
def test_lightly_train_s_files_say_the_same(tmp_path: Path, kept: str) -> None:
    (tmp_path / kept).write_bytes((LIGHTLY / "sparse" / kept).read_bytes())
    assert settings_of(tmp_path) == SPARSE


def test_the_whole_run_folder() -> None:
    assert settings_of(LIGHTLY / "sparse") == SPARSE
    assert settings_of(EXPLODING).gradient_clip == 0.0


def test_resolved_wins_over_auto_and_the_last_run_of_a_log_counts(tmp_path: Path) -> None:
    def args(title: str, **changed: object) -> str:
        values = {
            "float32_matmul_precision": "auto",
            "method": "simclr",
            "precision": "auto",
            "optim": "auto",
            **changed,
        }
        return f"[2026-01-01 00:00:00,000][INFO] {title} {json.dumps(values, indent=4)}\n[x][INFO] more\n"

    log = args("Args:", batch_size=4) + args(
        "Resolved configuration:\n", batch_size=4, precision="16-mixed", optim="adamw"
    )
    later = args("Args:", batch_size=64) + args("Resolved Args:", batch_size=32, optim="sgd", optim_args={"lr": "1e-3"})
    (tmp_path / "train.log").write_text(log)
    assert settings_of(tmp_path) == Settings("lightly-train", "16-mixed", batch_size=4, optimizer="adamw")
    (tmp_path / "train.log").write_text(log + later)
    found = settings_of(tmp_path)
    assert (found.batch_size, found.optimizer, found.learning_rate) == (32, "sgd", 0.001)


def test_a_cut_train_log(tmp_path: Path) -> None:
    text = (LIGHTLY / "sparse" / "train.log").read_text()
    (tmp_path / "train.log").write_text(text[: text.index("Resolved Args") + 200])
    assert settings_of(tmp_path).batch_size == 8
    (tmp_path / "train.log").write_text(text[:100])
    assert settings_of(tmp_path) == Settings()


def test_lightning_s_hparams_with_foreign_objects(tmp_path: Path) -> None:
    folder = tmp_path / "lightning_logs" / "version_0"
    folder.mkdir(parents=True)
    text = "optimizer: adam\nlr: 1e-3\nmodel: !!python/object:nets.Net\n  width: 3\nfn: !!python/name:torch.relu ''\n"
    (folder / "hparams.yaml").write_text(text)
    assert settings_of(tmp_path) == Settings("lightning", learning_rate=0.001, optimizer="adam")


def test_the_later_version_counts(tmp_path: Path) -> None:
    for version in (0, 1):
        folder = tmp_path / f"version_{version}"
        folder.mkdir()
        (folder / "hparams.yaml").write_text(f"lr: {version}.5\n")
    assert settings_of(tmp_path).learning_rate == 1.5


@pytest.mark.parametrize(
    ("name", "text", "settings"),
    [
        ("training_args.json", '{"max_grad_norm": 1.0, "bf16": true, "learning_rate": 2e-5, "warmup_steps": 100}',
         Settings(precision="bf16", learning_rate=2e-5, warmup_steps=100, gradient_clip=1.0)),
        (".hydra/config.yaml", "optim:\n  lr: 3.0e-4\ntrainer:\n  gradient_clip_val: 0.5\n  precision: 16-mixed\n",
         Settings(precision="16-mixed", learning_rate=3e-4, gradient_clip=0.5)),
        ("args.yaml", "lr0: 0.01\nbatch: 16\n", Settings(learning_rate=0.01)),
        ("ds_config.json", '{"fp16": {"enabled": true}, "gradient_clipping": 1.0, "bf16": {"enabled": false}}',
         Settings(precision="fp16", gradient_clip=1.0)),
        ("config.json", '{"torch_dtype": "float16", "vocab_size": 32000}', Settings()),
        ("config.json", "[1, 2]", Settings()),
        ("config.json", "{", Settings()),
    ],
    ids=str,
)  # fmt: skip
def test_where_frameworks_leave_their_settings(tmp_path: Path, name: str, text: str, settings: Settings) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert settings_of(tmp_path) == settings


def test_what_a_logger_wrote_counts_before_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "args.yaml").write_text("lr: 0.5\nweight_decay: 0.1\ngrad_clip: 2.0\n")
    (tmp_path / "hparams.yaml").write_text("lr: 0.1\n")
    assert settings_of(tmp_path) == Settings(learning_rate=0.1, gradient_clip=2.0)


def test_transformers_by_its_state_file(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-50").mkdir()
    (tmp_path / "checkpoint-50" / "trainer_state.json").write_text("{}")
    assert settings_of(tmp_path) == Settings(framework="transformers")


@given(st.binary(max_size=80))
def test_any_bytes_in_the_files(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / "hparams.yaml").write_bytes(content)
    (folder / "train.log").write_bytes(b"Args: {" + content)
    assert isinstance(settings_of(folder), Settings)


def test_a_folder_of_data_beside_the_log_is_not_walked(tmp_path: Path) -> None:
    for index in range(200):
        (tmp_path / "data" / str(index)).mkdir(parents=True)
    (tmp_path / "hparams.yaml").write_text("lr: 0.5\n")
    assert settings_of(tmp_path).learning_rate == 0.5
    assert settings_of(tmp_path / "missing") == Settings()


def test_a_huge_train_log_is_read_at_its_head_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "PART_BYTES", 200)
    arguments = '[x] Args: {{"method": "simclr", "optim": "auto", "precision": "auto", "batch_size": {}}}\n'
    log = tmp_path / "train.log"
    for text in (arguments.format(4), arguments.format(4) + "x\n" * 5000):
        log.write_text(text)
        assert settings_of(tmp_path).batch_size == 4
    log.write_text(arguments.format(4) + "x\n" * 5000 + arguments.format(8))
    assert settings_of(tmp_path).batch_size == 8


def test_hydra_keeps_the_config_and_what_was_said_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/config.yaml").write_text("optimizer:\n  lr: 0.003\ntrainer:\n  max_grad_norm: 2.0\n")
    assert settings_of(tmp_path) == Settings(learning_rate=0.003, gradient_clip=2.0)
    (tmp_path / ".hydra/overrides.yaml").write_text(
        "- optimizer.lr=0.01\n- +trainer.batch_size=48\n- ~scheduler\n- 7\n"
    )
    assert settings_of(tmp_path) == Settings(learning_rate=0.01, gradient_clip=2.0, batch_size=48)


@pytest.mark.parametrize("word", ["~trainer.gradient_clip_val=1.0", "~trainer.gradient_clip_val"])
def test_what_hydra_was_told_to_take_away_is_not_set(tmp_path: Path, word: str) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/overrides.yaml").write_text(f"- {word}\n- ++optimizer.lr=0.02\n")
    assert settings_of(tmp_path) == Settings(learning_rate=0.02)


@pytest.mark.parametrize("broken", ["{", "[1, 2]", "- a: [", "", "\0"])
def test_hydra_s_files_may_be_broken(tmp_path: Path, broken: str) -> None:
    (tmp_path / ".hydra").mkdir()
    for name in ("config.yaml", "overrides.yaml"):
        (tmp_path / ".hydra" / name).write_text(broken)
    assert settings_of(tmp_path) == Settings()


def test_ray_tune_s_parameters_stand_beside_its_logs(tmp_path: Path) -> None:
    (tmp_path / "params.json").write_text('{"lr": 0.0005, "grad_clip": 40.0, "train_batch_size": 4000, "model": {}}')
    assert settings_of(tmp_path) == Settings()  # anybody's parameters
    (tmp_path / "progress.csv").write_text("training_iteration\n")
    assert settings_of(tmp_path) == Settings(learning_rate=0.0005, gradient_clip=40.0, batch_size=4000)
    (tmp_path / "params.json").write_text('{"lr": ')
    assert settings_of(tmp_path) == Settings()


def test_hparams_as_json(tmp_path: Path) -> None:
    (tmp_path / "hparams.json").write_text('{"learning_rate": 0.02, "warmup_steps": 100}')
    assert settings_of(tmp_path) == Settings(learning_rate=0.02, warmup_steps=100)
