"""The launch page's fourth part: what the run would do with each turn, and what stands in its way."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from app import data
from app.components.errors import fragment
from app.components.format import counted, plain
from app.components.launch_where import show_sent
from app.components.run_status import REFRESH_S, duration
from app.components.turn_table import turn_table
from app.token_counts import CountJob, TokenCounts, token_counts
from db.enums import RunStatus
from db.errors import StorageError
from db.records import Conversation
from trainer.config import TrainConfig
from trainer.data.findings import Finding
from trainer.errors import ConfigError
from trainer.estimate import Estimate
from trainer.preview import Preview
from trainer.starting import find_start

_SUMMARIES = {
    "unscored": ("conversation without a score", "conversations without a score"),
    "partly_scored": ("conversation with unscored turns", "conversations with unscored turns"),
    "no_signal": ("conversation without a signal", "conversations without a signal"),
    "too_long": ("turn over the context limit", "turns over the context limit"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The verdict: what forbids the start, empty if nothing does."""

    blocking: tuple[str, ...]


def show_check(
    conversations: Sequence[Conversation], config: TrainConfig, table: Preview, *, model_here: bool
) -> Check:
    """Show the turns, the warnings and the engine's work.

    Token counts follow when they are there, and after them time and memory.
    """
    job, estimating, trouble = None, None, ""
    is_idle = not data.runs_with_status(*(s for s in RunStatus if s.has_process))
    if model_here and conversations:
        try:
            job = token_counts(conversations, config)
            if not job.pending and job.counts and is_idle and not config.endpoint:
                estimating = token_counts(conversations, config, estimate=True)
        except StorageError as error:
            trouble = str(error)
    counts = job.counts if job and not job.pending else None
    if estimating and not estimating.pending:
        counts = estimating.counts or counts
    blocking = [finding.text for finding in table.warnings if finding.blocking]
    warnings = [finding for finding in table.warnings if not finding.blocking]
    if counts:
        blocking += counts.blocking
        warnings += counts.warnings
    blocking += _start_misfit(config)
    turn_table(
        table.turns,
        tokens=counts.turns if counts else {},
        replies={
            (index, turn): message.content
            for index, conversation in enumerate(conversations)
            for turn, message in enumerate(conversation.assistant_messages)
        },
        limit=config.max_context_tokens,
        key="launch_turns",
    )
    _show_warnings(warnings)
    _show_work(job, counts, trouble or (job.failure if job else ""))
    if counts and counts.sent:
        show_sent(counts.sent)
    elif counts:
        _show_cost(estimating, counts.cost)
    for text in blocking:
        st.error(plain(text), icon=":material/block:")
    return Check(blocking=tuple(blocking))


def _start_misfit(config: TrainConfig) -> list[str]:
    """Say why the adapter to start from does not fit this run; empty if it fits, or there is none."""
    try:
        find_start(data.settings(), config)
    except ConfigError as error:
        return [str(error)]
    return []


def _show_warnings(warnings: Sequence[Finding]) -> None:
    """Show one line for each kind of warning, with the places folded."""
    if not warnings:
        return
    kinds: dict[str, list[Finding]] = defaultdict(list)
    for warning in warnings:
        kinds[warning.kind].append(warning)
    summary = [
        counted(len(found), *_SUMMARIES[kind]) if kind in _SUMMARIES else plain(found[0].text)
        for kind, found in kinds.items()
    ]
    st.warning(" · ".join(summary), icon=":material/warning:")
    places = [plain(warning.text) for kind in _SUMMARIES for warning in kinds.get(kind, ())]
    if places:
        with st.expander(f"Where ({len(places)})"):
            st.markdown("\n".join(f"- {place}" for place in places))


def _show_work(job: CountJob | None, counts: TokenCounts | None, trouble: str) -> None:
    """Say how many tokens go through the model, or why that is not known."""
    if counts:
        saved = 1 - counts.distinct_tokens / counts.turn_tokens if counts.turn_tokens else 0
        st.markdown(
            f":material/memory: An epoch computes **{counts.distinct_tokens:,} tokens**; one pass "
            f"for each turn would compute {counts.turn_tokens:,} ({saved:.0%} saved, because the "
            "turns of a conversation share their beginning)."
        )
    elif trouble:
        st.caption(f":material/info: Tokens could not be counted: {plain(trouble)}")
    elif job is None:
        st.caption("Token counts appear once the model is on this machine.")
    else:
        fragment(REFRESH_S / 2)(_wait)(job, "Counting tokens… you can start without them.")


def _show_cost(job: CountJob | None, cost: Estimate | None) -> None:
    """Say how long the run will take and how much memory, or why that is not known."""
    if cost:
        st.markdown(
            f":material/timer: The run takes **about {duration(cost.seconds)}** and "
            f"**{_gb(cost.memory_bytes)}** of memory, of {_gb(cost.free_bytes)} that are free.",
            help=f"{duration(cost.load_s)} to load the model, {duration(cost.measure_s)} to measure "
            f"the data, {duration(cost.train_s)} to train, {duration(cost.sample_s)} to answer the "
            "sample prompts. Taken from a short trial of the model on this machine.",
        )
    elif job is None:
        st.caption("Time and memory are estimated while no run is going on.")
    elif job.pending:
        fragment(REFRESH_S / 2)(_wait)(
            job, "Trying the model, to estimate time and memory… you can start without it."
        )
    else:
        st.caption(f":material/info: Time and memory are not known: {plain(job.failure)}")


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"


def _wait(job: CountJob, text: str) -> None:
    """Look whether the child process is done; then draw the page again, with what it found."""
    if job.pending:
        st.caption(f":material/hourglass_top: {text}")
    else:
        st.rerun()
