# Short for `python3 bootstrap.py ...`, which also works where there is no make.
# It makes .venv, installs the twin there (as plain Python) and runs it.

PYTHON ?= python3

.PHONY: help sendmail fast test check install dev docs wheels clean

help:
	@$(PYTHON) bootstrap.py help

# The mail storm, queue on disk against queue on tmpfs.
sendmail:
	@$(PYTHON) bootstrap.py sendmail

# Compile what a run spends its time in.
fast:
	@$(PYTHON) bootstrap.py fast

# The tests; ARGS="-k name" goes to pytest.
test:
	@$(PYTHON) bootstrap.py test $(ARGS)

# All that CI checks.
check:
	@PYTHON=$(PYTHON) bash .ci/run

install dev docs wheels clean:
	@$(PYTHON) bootstrap.py $@
