"""What the lessons ask: a file for each lesson, its questions by number.

Models: the assistant's copy of the exercise sheet. Question N.0 is the prediction of lesson N.
Linux counterpart: none.
Invariants: an answer is a simulation or a calculation, and no number that somebody typed; no trap
 is a right answer (tests/lesson/test_lessons.py).
Left out: the texts around a question: they stand in the lesson.
"""
