"""The run page's chain of rounds: which run started from which, and what each one came to."""

from collections.abc import Sequence

import streamlit as st

from app import data, routes
from app.components.charts import signed
from app.components.format import plain, score_text
from app.components.run_actions import may_act, run_again
from db.enums import RunStatus
from db.records import Round, Run


def render_lineage(run: Run) -> None:
    """Show the rounds before and after a run, if there are any, and offer the next one."""
    rounds, following = data.rounds(run.id), data.next_rounds(run.id)
    if len(rounds) > 1:
        st.markdown(f"**Rounds** {len(rounds)}, each from the adapter of the one before")
        st.markdown(round_table(rounds, run.id))
        st.caption(
            "Mean score: of the turns that a round learned from. Held out: how far held-out replies "
            "moved as their scores ask, in nats a token, from where the round started. KL to base: "
            "how far its model is from the base model, in nats a token."
        )
    for later in following:
        st.page_link(
            routes.RUN,
            label=f"Next round: run {later.id}, {plain(later.name)}",
            icon=":material/subdirectory_arrow_right:",
            query_params={routes.RUN_PARAM: str(later.id)},
        )


def offer_next_round(run: Run) -> None:
    """Show the button that opens the launch page, filled in to go on from this run's adapter."""
    if run.status is not RunStatus.FINISHED or not may_act():
        return
    if st.button(
        "Next round",
        icon=":material/replay_circle_filled:",
        key="next_round",
        help="Opens the launch page with this run's settings, starting from its adapter. Choose "
        "conversations that it has taken part in since: their replies carry its own "
        "log-probabilities.",
    ):
        run_again(run, {"start_from": str(run.id)})


def round_table(rounds: Sequence[Round], current: int) -> str:
    """Return the rounds as a Markdown table, oldest first; the run that is shown is bold."""
    lines = ["| round | run | mean score | held out | KL to base |", "|---|---|---|---|---|"]
    for number, round in enumerate(rounds, start=1):
        held_out = "–" if round.held_out is None else signed(round.held_out)
        kl = "–" if round.kl_base is None else f"{round.kl_base:.3f}"
        score = "–" if round.mean_score is None else score_text(round.mean_score)
        lines.append(f"| {number} | {_name(round, current)} | {score} | {held_out} | {kl} |")
    return "\n".join(lines)


def _name(round: Round, current: int) -> str:
    name = f"{round.run_id} · {plain(round.name)}"
    if round.run_id == current:
        return f"**{name}**"
    if not round.is_there:
        return f":gray[{name} (deleted)]"
    return f"[{name}](run?{routes.RUN_PARAM}={round.run_id})"
