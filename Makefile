# Two commands do everything from a fresh clone: `make quickstart` and `make test`.
# Set-up (virtual environment, packages, Chromium) runs by itself, once; PYTHON=python3.12 picks another Python.
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup quickstart full test lint notebooks base sites bench clean

help:
	@echo "make quickstart  the whole loop in one go: collect, learn, dream, improve, score; writes runs/quickstart/report.html"
	@echo "make full        the same, collecting everything and scoring all test tasks with 3 seeds"
	@echo "make test        all tests"
	@echo "make lint        ruff"
	@echo "make sites       serve the WebArena replicas on this machine, for you to look at"
	@echo "make bench       time resets and steps, against BrowserGym in an environment of its own"
	@echo "make notebooks   rebuild and run the notebooks from notebooks/src"
	@echo "make base        rebuild the tiny base model in assets/"
	@echo "                 (more options: make quickstart ARGS=--fresh)"
	@echo "make clean       remove the virtual environment and caches; runs/ stays"

$(VENV)/.packages: requirements.txt requirements-webarena.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11: name a newer one, as in make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(RUN) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	$(RUN) -m pip install --disable-pip-version-check --quiet -r requirements.txt -c constraints.txt
	$(RUN) -m pip install --disable-pip-version-check --quiet --no-deps -r requirements-webarena.txt -e .
	touch $@

$(VENV)/.chromium: $(VENV)/.packages
	$(RUN) -m dynaweb_lite setup-browser
	touch $@

setup: $(VENV)/.chromium

quickstart: setup
	$(RUN) -m dynaweb_lite quickstart $(ARGS)

full: setup
	$(RUN) -m dynaweb_lite quickstart --full --jobs 3 $(ARGS)

test: setup
	$(RUN) -m pytest

lint: $(VENV)/.packages
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

notebooks: setup
	$(RUN) notebooks/build.py

sites: $(VENV)/.packages
	$(RUN) -m dynaweb_lite sites --open $(ARGS)

bench: setup
	$(RUN) benchmarks/environment.py $(ARGS)

base: $(VENV)/.packages
	$(RUN) -m dynaweb_lite build-base

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache build *.egg-info
