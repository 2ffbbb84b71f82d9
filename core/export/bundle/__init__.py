"""Scripts of torch and the standard library: what they carry of core's own source, and how it is written down."""
