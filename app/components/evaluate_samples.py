"""The answers before and after training, side by side, and what an automatic judge says of them."""

import streamlit as st

from app import data, run_files
from app.components.errors import fragment, guarded
from app.components.format import counted, plain
from app.components.run_actions import may_act
from app.components.transcript import render_tools
from app.run_files import Sample
from db.records import Run
from trainer.evaluating.judging import Judgements, endpoint_of, start_judging
from trainer.evaluating.win_rate import win_rate

EVERY_S = 2.0


def render_samples(run: Run, samples: list[Sample]) -> None:
    """Show the judge's word, then every prompt with both answers: the held-out ones first."""
    judgements = run_files.judge(run)
    live = judgements is not None and judgements.is_under_way
    fragment(EVERY_S if live else None)(_judge)(run, live)
    verdicts = judgements.verdicts if judgements else ()
    for is_held_out, title, about in (
        (True, "Held-out prompts", "The same for every run, and never trained on."),
        (False, "Openings of the data", "What the run was trained on."),
    ):
        shown = [(i, s) for i, s in enumerate(samples) if s.held_out is is_held_out]
        if not shown:
            continue
        st.markdown(f"**{title}** :gray[{about}]")
        for place, sample in shown:
            verdict = verdicts[place] if place < len(verdicts) else None
            _sample(run, sample, verdict)


def _sample(run: Run, sample: Sample, verdict: float | None) -> None:
    with st.container(border=True):
        for role, content in sample.prompt:
            st.caption(role)
            st.text(content, width="stretch")
        render_tools(sample.tools)
        before, after = st.columns(2)
        with before:
            start = "the start" if run.config.get("start_from") else "base model"
            st.markdown(f"**Before** :gray[{start}]")
            st.text(sample.before or "(empty)", width="stretch")
        with after:
            st.markdown(f"**After** :gray[with the adapter] {_badge(verdict)}")
            st.text(_after(sample.after, run), width="stretch")


def _badge(verdict: float | None) -> str:
    if verdict is None:
        return ""
    if verdict > 0.5:
        return ":green-badge[:material/smart_toy: judge: better]"
    return (
        ":red-badge[:material/smart_toy: judge: worse]"
        if verdict < 0.5
        else ":gray-badge[:material/smart_toy: judge: no difference]"
    )


def _after(answer: str | None, run: Run) -> str:
    if answer is not None:
        return answer or "(empty)"
    return "–" if run.status.has_ended else "Comes when training has ended."


def _judge(run: Run, live: bool) -> None:
    """Show what the judge said, and offer to ask it (again)."""
    judgements = run_files.judge(run)
    if live and (judgements is None or not judgements.is_under_way):
        st.rerun()
    if judgements is not None:
        _told(judgements)
    can_ask = may_act() and run.status.has_ended and not live
    if can_ask and endpoint_of(data.database()) is not None:
        st.button(
            "Ask the judge again" if judgements else "Ask the judge",
            icon=":material/smart_toy:",
            on_click=_ask,
            args=(run.id,),
            key="ask_judge",
            help="Sends prompts and answers to the endpoint in the settings.",
        )


def _told(judgements: Judgements) -> None:
    known = [verdict for verdict in judgements.verdicts if verdict is not None]
    if judgements.is_under_way:
        total = max(1, len(judgements.verdicts))
        st.progress(len(known) / total, text="The automatic judge is being asked")
    found = win_rate(known)
    if found is not None:
        st.info(
            f"**Automatic judge**, {plain(judgements.model)} at {plain(judgements.host)}: the answer "
            f"after training is preferred in **{found.rate:.0%}** of "
            f"{counted(found.prompts, 'prompt')} (95 % interval {found.low:.0%} to {found.high:.0%}; "
            "a tie counts half). Each pair was judged in both orders. This is a model's opinion, "
            "not a person's.",
            icon=":material/smart_toy:",
        )
    if judgements.error:
        st.warning(
            f"The automatic judge gave no verdict on {judgements.verdicts.count(None)} prompts. "
            f"{plain(judgements.error)}",
            icon=":material/warning:",
        )


@guarded
def _ask(run_id: int) -> None:
    data.write(start_judging, run_id)
