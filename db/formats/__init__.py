"""Conversation formats: bytes to conversations and back; no database in it."""
