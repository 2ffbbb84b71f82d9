"""Routes of our own on Streamlit's server, and its background tasks."""
