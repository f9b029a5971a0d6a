"""All adapters, in the order in which they are asked whether a path is theirs."""

from gradtrend.ingest import jsonl
from gradtrend.ingest.reading import Adapter

ADAPTERS: tuple[Adapter, ...] = (jsonl.ADAPTER,)
