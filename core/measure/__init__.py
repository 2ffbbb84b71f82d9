"""Statistics: of tensors, of the stream, and over seeds."""
