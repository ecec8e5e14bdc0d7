"""How a run changed the model: fixed prompts, held-out replies, and an automatic judge."""
