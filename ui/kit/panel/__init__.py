"""Controls of the sidebar and above pictures, each row drawn by one component."""
