"""Bytes on disk: streams, decompression, SQLite, protobuf. Nothing here knows a metric."""
