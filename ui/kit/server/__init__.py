"""Routes of our own beside Streamlit's, and what the server does while no page is drawn."""
