"""Recordings of real servers and what is learnt from them: parameters, and how far they hold."""
