# On a fresh machine with git, make and Python 3.11 or newer, every target sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all check browser network format bench clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make .venv with the pinned dependencies

$(READY): pyproject.toml paper/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "taciturn needs Python 3.11 or newer; found $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "this Python has no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --no-build-isolation --editable '.[audit,onnx,dev]' --editable paper
	@touch $(READY)

demo: $(READY)  ## train and attack the paper's baseline
	$(BIN)/taciturn demo

check: $(READY)  ## format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

browser:  ## Debian's chromium, with which tests look at the report, where it can be had
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq >/dev/null 2>&1 && \
	  apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1; } || \
	  echo "no chromium: tests will not look at the report; on Debian: apt-get install chromium"

network:  ## Debian's iproute2, with which tests make two hosts, where it can be had
	@command -v ip >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq >/dev/null 2>&1 && \
	  apt-get install -y -qq --no-install-recommends iproute2 >/dev/null 2>&1; } || \
	  echo "no ip: tests will not make two hosts; on Debian: apt-get install iproute2"

test: check browser network  ## all checks and tests; what CI runs
	$(BIN)/pytest -m 'not slow' --numprocesses 2 --dist loadfile

test-all: check browser network  ## the long proofs too
	$(BIN)/pytest

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
	rm -rf $(VENV) build dist src/*.egg-info paper/src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache
