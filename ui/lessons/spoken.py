"""For screen readers: in which language a page is read. Streamlit says English of all of it."""

import streamlit as st

# The menu beside the page stays English, and so do the other pages: what is said here ends with this one.
_spoken = st.components.v2.component(
    "ablation_spoken",
    js="""
export default ({ data }) => {
  const main = document.querySelector("[data-testid=stMain]")
  main?.setAttribute("lang", data)
  return () => main?.removeAttribute("lang")
}
""",
)


def spoken(language: str):
    """Tell the browser."""
    _spoken(key="spoken", data=language)
