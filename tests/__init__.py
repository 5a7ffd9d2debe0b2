"""The tests: one folder for each of the twin's, plus laws and checks of the whole."""
