"""App with two pages of two lines of text: the floor of benchmarks/links.py."""

import streamlit as st


def first():
    """Draw the first page: a title and a link."""
    st.title("First")
    st.page_link(SECOND, label="Go")


def second():
    """Draw the second page: a title, a text and a link back."""
    st.title("Second")
    st.text("Arrived")
    st.page_link(FIRST, label="Back")


if __name__ == "__main__":
    FIRST = st.Page(first, default=True)
    SECOND = st.Page(second)
    st.navigation([FIRST, SECOND], position="hidden").run()
