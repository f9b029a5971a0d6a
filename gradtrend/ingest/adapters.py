"""All adapters, in the order in which they are asked whether a path is theirs."""

from gradtrend.ingest import (
    console,
    csv_log,
    jsonl,
    mlflow_store,
    mmengine_log,
    tb_json,
    tensorboard,
    trackio_store,
    trainer_state,
    wandb_run,
)
from gradtrend.ingest.reading import Adapter

# The sure ones first: magic bytes, then shapes of JSON, then text, where the console takes what nobody else does.
ADAPTERS: tuple[Adapter, ...] = (
    tensorboard.ADAPTER,
    mlflow_store.ADAPTER,
    wandb_run.ADAPTER,
    trackio_store.ADAPTER,
    trainer_state.ADAPTER,
    mmengine_log.ADAPTER,
    jsonl.ADAPTER,
    tb_json.ADAPTER,
    csv_log.ADAPTER,
    console.ADAPTER,
)
