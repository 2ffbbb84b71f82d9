"""App with one slider and its value: the floor of benchmarks/paint.py and move.py."""

import streamlit as st

if __name__ == "__main__":
    st.title("Floor")
    st.text(f"{st.slider('Value', 0, 100)} is chosen")
