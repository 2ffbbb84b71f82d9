"""Questions about trainings."""
