# The verbs: make run | test | check | bench | soak | learn | format. Everything lives in .venv and EVERYTURN_HOME.
PYTHON ?= python3
PORT ?= 8501
SOAK_SECONDS ?= 60
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
POSTGRES := $(wildcard /usr/lib/postgresql/*/bin/initdb)
# two test processes compute with a thread each: two that share all cores' threads wait for each other
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
LEFT_OUT := $(strip $(if $(CHROMIUM),,not browser)$(if $(CHROMIUM)$(POSTGRES),, and )$(if $(POSTGRES),,not postgres))

.DEFAULT_GOAL := help
.PHONY: help setup run model database test check bench soak learn trl format

help:
	@echo "make run      set everything up and open the app on http://localhost:$(PORT)"
	@echo "make test     run the tests (those in a browser need Chromium)"
	@echo "make check    everything CI runs: format, lint, types, layers, tests"
	@echo "make bench    measure the engine on this machine (docs/performance.md)"
	@echo "make soak     load and kill the app for a minute at a time (SOAK_SECONDS=60)"
	@echo "make learn    prove on the real model that training works (docs/learning.md)"
	@echo "make trl      prove that TRL's trainers take the exports (installs TRL)"
	@echo "make format   format the code and mend what can be mended"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "EveryTurn needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "Install venv first: apt-get install python3-venv"; exit 1; }

$(VENV)/.run: $(BIN)/python requirements.txt constraints.txt pyproject.toml
	@echo "Installing into $(VENV): a few minutes and about 2 GB, once; nothing is printed meanwhile ..."
	$(PIP) install --quiet -r requirements.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.txt requirements-hub.txt requirements-remote.txt
	@echo "Installing what the checks need ..."
	$(PIP) install --quiet -r requirements-dev.txt
	@touch $@

setup: $(VENV)/.dev
	@git rev-parse --git-dir >/dev/null 2>&1 && $(BIN)/pre-commit install >/dev/null || true

model: $(VENV)/.run
	@$(BIN)/python -m trainer pull smollm2-135m

database: $(VENV)/.run
	@$(BIN)/python -m db upgrade

run: model database
	@echo "EveryTurn: http://localhost:$(PORT)  (Ctrl+C ends it; runs go on)"
	$(BIN)/streamlit run app/main.py --server.port $(PORT)

test: $(VENV)/.dev model
	$(if $(CHROMIUM),,@echo "No Chromium here: the browser tests are LEFT OUT (apt-get install -y chromium).")
	$(if $(POSTGRES),,@echo "No PostgreSQL here: the tests on it are LEFT OUT (apt-get install -y postgresql).")
	$(PYTEST) $(if $(LEFT_OUT),-m "$(LEFT_OUT)")

check: $(VENV)/.dev model
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(PYTEST) --durations=10

bench: $(VENV)/.dev model
	$(BIN)/python -m tests.bench

soak: $(VENV)/.dev
	SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/pytest tests/soak -s --durations=0

learn: $(VENV)/.dev model
	$(BIN)/python -m tests.learn

trl: $(VENV)/.dev
	$(PIP) install --quiet -r requirements-trl.txt
	$(BIN)/pytest tests/interop/check_trl.py

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
