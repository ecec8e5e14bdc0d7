"""Text to numbers that say what to learn: rendering, rewards, credit, datums. No torch here."""
