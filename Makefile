# Short for `python3 bootstrap.py ...`, which also works where there is no make.
# It makes .venv, installs the twin there (compiled, where there is a C compiler) and runs it.

PYTHON ?= python3

.PHONY: help sendmail test check install dev clean

help:
	@$(PYTHON) bootstrap.py help

# The mail storm, queue on disk against queue on tmpfs.
sendmail:
	@$(PYTHON) bootstrap.py sendmail

# The tests; ARGS="-k name" goes to pytest.
test:
	@$(PYTHON) bootstrap.py test $(ARGS)

# All that CI checks.
check:
	@PYTHON=$(PYTHON) bash .ci/run

install dev clean:
	@$(PYTHON) bootstrap.py $@
