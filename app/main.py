"""The web server: `streamlit run app/main.py` serves the pages of `app/router.py` behind the gate.

Streamlit finds `app` by reading this file. The pages are another file because Streamlit runs that
one anew for every click, and imports this one once, before there is anything to run pages in.
"""

from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit.starlette import App

from app.gate import SIGN_IN_PATH, Gate, base_path, take_password
from app.watch import watching

app = App(
    "router.py",
    routes=[Route(f"{base_path()}{SIGN_IN_PATH}", take_password, methods=["POST"])],
    middleware=[Middleware(Gate)],
    lifespan=watching,
)
