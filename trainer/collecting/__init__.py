"""Asking a model for many replies in the background, for people to score."""
