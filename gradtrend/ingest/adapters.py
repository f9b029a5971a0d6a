"""All adapters, in the order in which they are asked whether a path is theirs."""

from gradtrend.ingest import jsonl, mlflow_files, mlflow_server, mlflow_sqlite, tensorboard
from gradtrend.ingest.reading import Adapter

ADAPTERS: tuple[Adapter, ...] = (
    mlflow_server.ADAPTER,
    mlflow_files.ADAPTER,
    mlflow_sqlite.ADAPTER,
    tensorboard.ADAPTER,
    jsonl.ADAPTER,
)
