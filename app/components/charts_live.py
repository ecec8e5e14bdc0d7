"""A Plotly figure that is redrawn in place: zoom and legend choices survive new points.

`st.plotly_chart` cannot do that: its element's identity is a hash of the figure, so that every new
point builds the chart anew. This component hands the figure to Plotly's own `react`, with the
library that the plotly package brings along; nothing is fetched from outside.
"""

from pathlib import Path

import plotly
import streamlit as st
from streamlit.components import v1, v2

_LIBRARY = v1.declare_component("plotly", path=Path(plotly.__file__).parent / "package_data")
"""Never drawn: its folder is how the server hands out `plotly.min.js`."""

_chart = v2.component(
    "everyturn_chart",
    html='<div class="chart"></div>',
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
    isolate_styles=False,  # Plotly's styles belong to the page
)


def live_chart(figure: str, *, scope: str, key: str, alt: str, height: int) -> None:
    """Draw a figure, or redraw it in place.

    Args:
        figure: What to draw, in Plotly's JSON form. A redraw knows traces again by their `uid`.
        scope: Names what the figure is about: while it stays, so do zoom and legend choices.
        key: Name of the chart on the page, and of the files that it is saved as.
        alt: The picture in words, for those who cannot see it.
        height: In pixels.
    """
    base = st.get_option("server.baseUrlPath").strip("/")
    _chart(
        key=key,
        data={
            "figure": figure,
            "scope": scope,
            "alt": alt,
            "height": height,
            "name": key,
            "source": f"{base and '/'}{base}/component/{_LIBRARY.name}/plotly.min.js",
        },
        height=height,
    )
