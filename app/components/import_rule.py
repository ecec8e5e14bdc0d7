"""How a file's scores become scores here: shown in words and numbers, and open to correction."""

from dataclasses import replace

import streamlit as st

from app.components.errors import shown
from app.components.format import counted, plain
from db.formats import Detection, Scale, ScaleKind, ScoreRule, ScoreTarget, SeenScores

_KINDS = {
    ScaleKind.NUMBER: "Numbers",
    ScaleKind.YES_NO: "Yes or no",
    ScaleKind.RANK: "Ranks",
}
_TARGETS = {
    ScoreTarget.AS_FILE: "As in the file",
    ScoreTarget.LAST_REPLY: "The last reply",
    ScoreTarget.CONVERSATION: "The conversation",
}

_WIDTHS = (2.0, 2.1, 1.1, 1.1, 1.1, 1.1, 2.5)
_HEADS = ("Use", "Kind", "Worst", "Best", "→", "→", "About")


def render_rule(found: Detection, rule: ScoreRule, *, key: str) -> ScoreRule | None:
    """Show the rule and let it be edited.

    Args:
        found: What the file's beginning told: the kinds of scores in it.
        rule: The rule in force.
        key: Tells these widgets from others.

    Returns:
        The changed rule once it is submitted, else None.
    """
    if not found.scores:
        st.caption("The file has no scores: every turn waits for one.")
        return None
    st.markdown("**How its scores are read**")
    for seen in found.scores:
        scale = rule.scale(seen.scale.name) or seen.scale
        st.markdown(_words(seen, scale))
    with st.expander("Correct the scales", icon=":material/tune:"), st.form(key, border=False):
        for column, head in zip(st.columns(_WIDTHS, gap="xsmall"), _HEADS, strict=True):
            column.markdown(f":small[**{head}**]")
        scales = tuple(
            _scale(rule.scale(seen.scale.name) or seen.scale, f"{key}.{number}")
            for number, seen in enumerate(found.scores)
        )
        st.caption(
            "The worst and the best value of the file become the two scores beside them, what lies "
            "between goes in proportion; they do not matter for yes or no. For ranks, the best is "
            "the number of the first place. Several that are used become their mean. Scores run "
            "from −1 to 1; the pages offer 0 to 1."
        )
        if st.form_submit_button("Check with these scales", type="primary"):
            with shown():
                for scale in scales:
                    scale.check()
                return ScoreRule(scales)
    return None


def _words(seen: SeenScores, scale: Scale) -> str:
    examples = ", ".join(plain(text) for text in seen.examples)
    missing = f", {counted(seen.missing, 'empty one')}" if seen.missing else ""
    marks: list[str] = []
    if seen.doubt is not None and (scale.used or seen.doubt.is_of_scale):
        marks.append(seen.doubt.label)
    if seen.untrusted and scale.used and scale == seen.scale:
        marks.append(f"{counted(seen.untrusted, 'value')} off this scale")
    doubts = "".join(f" :orange-badge[{mark}]" for mark in marks)
    return (
        f"`{plain(scale.name)}`: {scale.words} :gray[· {counted(seen.count, 'value')} among the "
        f"first rows{missing}, such as {examples}]{doubts}"
    )


def _scale(scale: Scale, key: str) -> Scale:
    """Draw one line of the table of scales."""
    name = plain(scale.name)
    cells = st.columns(_WIDTHS, vertical_alignment="center", gap="xsmall")
    used = cells[0].toggle(name, scale.used, key=f"{key}.used")
    kind = cells[1].selectbox(
        f"{name}: kind",
        list(_KINDS),
        index=list(_KINDS).index(scale.kind),
        format_func=_KINDS.__getitem__,
        key=f"{key}.kind",
        label_visibility="collapsed",
    )
    ends = [
        column.number_input(
            f"{name}: {label}",
            value=float(value),
            format="%g",
            key=f"{key}.{label}",
            label_visibility="collapsed",
        )
        for column, label, value in zip(
            cells[2:6],
            ("worst value", "best value", "worst becomes", "best becomes"),
            (scale.low, scale.high, scale.to_low, scale.to_high),
            strict=True,
        )
    ]
    target = cells[6].selectbox(
        f"{name}: is about",
        list(_TARGETS),
        index=list(_TARGETS).index(scale.target),
        format_func=_TARGETS.__getitem__,
        key=f"{key}.target",
        label_visibility="collapsed",
    )
    return replace(
        scale,
        used=used,
        kind=kind,
        target=target,
        low=ends[0],
        high=ends[1],
        to_low=ends[2],
        to_high=ends[3],
    )
