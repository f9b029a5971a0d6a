"""What places and names say of logs: the folder of their run, the order of numbered ones, which name another."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from gradtrend.ingest.reading.patterns import HELD_OUT_WORDS

# Folders that loggers, trainers and launchers make inside one run.
_CONTAINER = re.compile(
    r"^(?:runs|logs?|lightning_logs|tb_logs|csv_logs|tensorboard(?:_logs?)?|tb|csv|json|jsonl|tfevents|events|metrics|wandb"
    r"|mlruns|trackio|debug|version_\d+|checkpoint[-_]\d+|files|vis_data|train|training|checkpoints|stdout|stderr|console"
    r"|ranks?|(?:local_?)?rank[-_]?\d+|attempts?[-_]?\d*|restarts?[-_]?\d*|latest-run"
    rf"|{'|'.join(HELD_OUT_WORDS)})$",
    re.IGNORECASE,
)
# Folders named by the time at which a part was begun: of mmengine, of SummaryWriter and its `add_hparams`, of W&B.
_DATED = re.compile(
    r"^(?:\d{8}[-_]\d{6}|[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_.+|(?:offline-)?run-\d{8}_\d{6}-\w+|\d{9,}(?:\.\d+)?)$"
)
_WRITER_OF_A_SERIES = ("grad", "loss", "norm")  # folders of `add_scalars`: one a series, named <tag>_<series>
_RANK = re.compile(
    r"(?:rank|worker|gpu|node|proc(?:ess)?|device|host)[-_.]?\d+|(?<=[-_.])r\d+(?=[-_.]|$)", re.IGNORECASE
)
_ROTATED = re.compile(r"^(?P<base>.+\.(?:log|out|err|txt|jsonl|csv))\.(?P<number>\d+)(?:\.gz)?$", re.IGNORECASE)
_HELD_OUT_WORD = re.compile(rf"(?<![a-z])(?:{'|'.join(HELD_OUT_WORDS)})(?![a-z])", re.IGNORECASE)
_NUMBERED = re.compile(r"(.+)#\d+", re.DOTALL)  # a run by its number in a file or folder
_WORDS = re.compile(r"[^a-z0-9]+")
_SAYS_NOTHING = frozenset(
    [
        "train",
        "training",
        "log",
        "logs",
        "run",
        "runs",
        "out",
        "output",
        "results",
        "result",
        "console",
        "stdout",
        "stderr",
        "job",
        "slurm",
        "nohup",
        "metrics",
    ]
)


def place_of(path: str) -> str:
    """The path of the file or folder of a run that may be one of several there (`out/exp#2`), as it was given."""
    numbered = _NUMBERED.fullmatch(path)
    return numbered[1] if numbered and not Path(path).exists() else path


def is_container(name: str) -> bool:
    """Whether a folder's name is one that loggers and trainers give to parts of a run."""
    return _CONTAINER.match(name) is not None or _DATED.match(name) is not None


def home_of(folder: Path, root: Path, made_by_writer: bool = False) -> Path:
    """The folder of the run to which a log in `folder` belongs, as far as names say: loggers' own folders left."""
    if made_by_writer and folder != root and folder.name.startswith(_WRITER_OF_A_SERIES):
        folder = folder.parent
    while folder != root and folder != folder.parent and (is_container(folder.name) or _is_rank_of_attempt(folder)):
        folder = folder.parent
    return folder


def _is_rank_of_attempt(folder: Path) -> bool:
    return folder.name.isdigit() and folder.parent.name.startswith("attempt")


def is_held_out(folder: Path) -> bool:
    """Whether a folder's name says held-out data, as Keras's `validation/`."""
    return folder.name.lower() in HELD_OUT_WORDS


def is_held_out_file(name: str, beside: Collection[str]) -> bool:
    """Whether a file's name says held-out data, and that of the training lies beside it: `val.csv` and `train.csv`."""
    for word in _HELD_OUT_WORD.finditer(name):
        before, after = name[: word.start()], name[word.end() :]
        others = {before + train + after for train in ("train", "training", "Train")}
        if before or after[:1] != ".":
            others.add((before.rstrip("-_.") + after) if before else after.lstrip("-_."))
        if others & set(beside) - {name}:
            return True
    return False


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which counters in names are compared as numbers: `.2` before `.10`."""
    return tuple((0, int(p), "") if p.isascii() and p.isdigit() else (1, 0, p) for p in re.split(r"(\d+)", text) if p)


def rotated_base(path: Path, beside: Collection[str]) -> str | None:
    """The name of the log of which this is the newest or an older piece, where such pieces lie beside it."""
    rotated = _ROTATED.match(path.name)
    base = rotated["base"] if rotated else path.name
    if rotated:
        return base if base in beside or len(beside) > 1 else None
    return base if any((other := _ROTATED.match(name)) and other["base"] == base for name in beside) else None


def age(path: Path, beside: Collection[str]) -> int:
    """How many pieces of a rotated log were begun after this one: 2 for `train.log.2` beside `train.log`, else 0."""
    rotated = _ROTATED.match(path.name)
    return int(rotated["number"]) if rotated and rotated["base"] in beside else 0


def without_rank(path: Path) -> str | None:
    """A path with its rank left out, the same for all ranks of a run; None where it names none."""
    text, count = _RANK.subn("", str(path))
    return text if count else None


def names(file: Path, folder: Path) -> bool:
    """Whether a file's name holds that of a folder, word for word: `train_exp1.log` names `exp1`."""
    of_folder = [word for word in _WORDS.split(folder.name.lower()) if word]
    of_file = [word for word in _WORDS.split(file.name.lower()) if word]
    if not of_folder or all(word in _SAYS_NOTHING for word in of_folder):
        return False
    n = len(of_folder)
    return any(of_file[i : i + n] == of_folder for i in range(len(of_file) - n + 1))


def likeness(a: str, b: str) -> int:
    """How many characters two names share at their beginning."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
