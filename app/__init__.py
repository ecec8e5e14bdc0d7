"""The web app: Streamlit, and nothing else; it talks to runs through the database alone."""
