"""A trained adapter on its way out: in four forms, each loaded again and compared before it is kept."""
