"""Lessons: predict, run, explain. What one is (lesson.py), what it can measure (readings/), how a prediction is judged (prediction.py)."""
