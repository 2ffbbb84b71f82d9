"""What a click costs that leads to a page with nothing on it but two lines of text. The floor of benchmarks/links.py."""

import streamlit as st


def first():
    st.title("First")
    st.page_link(SECOND, label="Go")


def second():
    st.title("Second")
    st.text("Arrived")
    st.page_link(FIRST, label="Back")


if __name__ == "__main__":
    FIRST = st.Page(first, default=True)
    SECOND = st.Page(second)
    st.navigation([FIRST, SECOND], position="hidden").run()
