"""Datums in, gradients out: the part of the trainer that computes."""
