"""Conversations in, adapter out: rendering, credit, datums, gradient, checkpoints, export.

Reads and writes runs through `db`; knows nothing of `app`.
"""
