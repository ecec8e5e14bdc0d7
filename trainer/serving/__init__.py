"""A local OpenAI-compatible endpoint for the base model and every adapter (`python -m trainer serve`)."""
