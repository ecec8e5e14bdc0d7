"""A run's life as a process: launch, worker, recorder, checkpoint, reconcile, download."""
