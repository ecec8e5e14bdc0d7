"""Who may be asked for many replies: the adapters of runs, and base models that are here."""

from dataclasses import dataclass

from app.chat_models import adapters_for, base_models, base_title


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """A base model, or the adapter of a run on it.

    Attributes:
        run_id: The run; None for the base model itself.
        title: What people know it by.
    """

    base_model: str
    run_id: int | None
    title: str


def answerers() -> list[Answerer]:
    """Return all that can be asked on this machine, each model's adapters before the model itself."""
    found: list[Answerer] = []
    for name in base_models():
        found += [
            Answerer(base_model=name, run_id=run.id, title=f"Run {run.id} · {run.name}")
            for run in adapters_for(name)
        ]
        found.append(
            Answerer(base_model=name, run_id=None, title=f"{base_title(name)} (base model)")
        )
    return found
