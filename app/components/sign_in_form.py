"""The form that sends name and password to the server: a page of Streamlit cannot set a cookie."""

from streamlit.components import v2

_HTML = """
<form method="post">
  <input type="hidden" name="back">
  <label>Name
    <input name="name" autocomplete="username" autocapitalize="none" spellcheck="false"
      maxlength="100" required></label>
  <label>Password
    <input name="password" type="password" autocomplete="current-password" maxlength="1000"
      required></label>
  <button type="submit">Sign in</button>
</form>
"""

_CSS = """
form { display: flex; flex-direction: column; gap: 1rem; font-family: var(--st-font); }
label { display: flex; flex-direction: column; gap: 0.25rem; font-size: 0.875rem;
  color: var(--st-text-color); }
input { font: inherit; font-size: 1rem; padding: 0.5rem 0.75rem; color: var(--st-text-color);
  background: var(--st-secondary-background-color); border: 1px solid var(--st-border-color);
  border-radius: var(--st-base-radius); }
input:focus-visible, button:focus-visible { outline: 2px solid var(--st-primary-color);
  outline-offset: 1px; }
button { font: inherit; font-size: 1rem; padding: 0.5rem 0.75rem; color: #ffffff; cursor: pointer;
  background: var(--st-primary-color); border: 0; border-radius: var(--st-button-radius); }
"""

_JS = """
export default function ({ data, parentElement }) {
  const form = parentElement.querySelector("form");
  form.action = data.action;
  form.elements.back.value = location.pathname + location.search;
  form.elements.name.focus();
}
"""

_mount = v2.component("everyturn_sign_in", html=_HTML, css=_CSS, js=_JS)


def render_sign_in_form(action: str) -> None:
    """Show the form.

    Args:
        action: The path of this site to which the browser sends it.
    """
    _mount(key="sign_in", data={"action": action}, height="content")
