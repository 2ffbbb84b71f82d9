"""Questions about a trained model."""
