"""Ablation Lab: measure what each component of a transformer block contributes.

`streamlit run app.py` imports this file for what serves it, and runs it as the start page.
"""

import streamlit as st

if __name__ == "__main__":
    from ui.start import start

    start()
else:
    from ui.kit.server.app import lifespan, routes

    app = st.App(__file__, routes=routes(), lifespan=lifespan)
