# On a fresh machine with git, make and Python 3.11 or newer, every target sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# An environment without the other distributions.
CORE := .venv-core
CORE_READY := $(CORE)/.ready
PACKAGES := chromium fonts-dejavu-core iproute2 postgresql
# Two processes share two cores: threads of the linear algebra would only wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist worksteal --durations 20
# The packages that everything else rests on, the jobs that are quickly tested, and what holds for
# all packages: about 100 seconds of a processor, in two halves.
QUICK := $(addprefix tests/,crypto data engine numerics privacy protocol settings jobs/test_base.py \
  jobs/align jobs/predict test_files.py test_rng.py repository/test_rooms.py) src/taciturn
# A server of MLflow for the tests, apart: it brings a hundred packages that nothing here needs.
MLFLOW := .mlflow/.ready
# Many tests start processes, each of which would compile the code anew.
unexport PYTHONDONTWRITEBYTECODE
# Which tenth of the long proofs `make proofs` runs: another one at each commit.
TENTH ?= $(shell echo $$((0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0) % 10)))
COVERAGE := --cov --cov-report term:skip-covered

.DEFAULT_GOAL := help
.PHONY: help setup demo check quick test test-core check-core test-all proofs coverage docs review mlflow system format bench clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make .venv with the pinned dependencies

$(READY): pyproject.toml audit/pyproject.toml ops/pyproject.toml paper/pyproject.toml risk/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "taciturn needs Python 3.11 or newer; found $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "this Python has no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --no-build-isolation --editable '.[audit,onnx,dev]' --editable audit --editable ops \
	  --editable paper --editable risk
	@touch $(READY)

demo: $(READY)  ## four trainings, attacked from both seats
	$(BIN)/taciturn demo

check: $(READY)  ## format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check  ## all checks and tests but the long proofs; what CI runs
	$(PYTEST) -m 'not slow'

quick: check  ## all checks, and the tests of the core: under a minute
	$(PYTEST) -m 'not slow' $(QUICK)

test-core: $(CORE_READY)  ## the core's tests, where no other distribution is installed
	OPENBLAS_NUM_THREADS=1 $(CORE)/bin/pytest --numprocesses 2 --dist worksteal -m 'not slow' \
	  --ignore tests/repository tests src/taciturn

check-core: $(CORE_READY)  ## collects all tests of the core there, and runs the quick ones
	$(CORE)/bin/pytest --collect-only -qq -m 'not slow' --ignore tests/repository tests src/taciturn >/dev/null
	OPENBLAS_NUM_THREADS=1 $(CORE)/bin/pytest --numprocesses 2 --dist worksteal -m 'not slow' \
	  $(filter-out tests/repository/%,$(QUICK))

# The core alone, with the tools and reference libraries of its tests.
$(CORE_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(CORE)
	$(CORE)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt setuptools
	$(CORE)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --no-build-isolation --editable '.[audit,dev]'
	@touch $(CORE_READY)

test-all: check test-core $(MLFLOW)  ## the long proofs too; within an hour
	$(PYTEST) --hypothesis-profile many

proofs: $(READY)  ## one tenth of the long proofs (TENTH=0 to 9), those that begin within ten minutes
	$(PYTEST) -m slow --tenth $(TENTH) --minutes 10

coverage: $(READY)  ## how much of the code `make test` runs, and whether that is enough
	$(PYTEST) -m 'not slow' $(COVERAGE)

docs: $(READY)  ## the documentation as a site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; with search: $(BIN)/python -m http.server --directory site"

review: $(READY)  ## docs/review.md, what a partner's reviewer reads, from a recorded training
	$(BIN)/python tools/review.py

mlflow: $(MLFLOW)  ## a local MLflow server for the tests, in .mlflow: 850 MB

$(MLFLOW): constraints.txt
	$(PYTHON) -m venv --clear .mlflow
	.mlflow/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt mlflow
	@touch $(MLFLOW)

system:  ## Debian packages for the tests that need a browser, two hosts or a database; as root
	@if { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null && \
	  command -v ip >/dev/null && { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1; \
	  then echo "a browser, ip and PostgreSQL are there"; \
	elif test "$$(id -u)" = 0 && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends $(PACKAGES); \
	else echo "as root, on Debian: apt-get install --no-install-recommends $(PACKAGES)"; exit 1; fi

bench: $(READY)  ## speed, as ratios in one run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --no-build-isolation --editable './paper[bench]'
	$(BIN)/python -m taciturn_paper.throughput
	$(BIN)/python -m taciturn_paper.wire
	$(BIN)/taciturn bench --against phe,heu

format: $(READY)  ## put the code in its form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove everything that was made
	rm -rf $(VENV) $(CORE) .mlflow build dist site src/*.egg-info */src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache .coverage
	find src audit ops paper risk tests tools -name __pycache__ -prune -exec rm -rf {} +
