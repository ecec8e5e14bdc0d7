"""One page a file; Streamlit runs them as scripts."""
