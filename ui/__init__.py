"""Streamlit pages of Ablation Lab, and the parts that they share."""
