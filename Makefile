PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench clean
.DEFAULT_GOAL := test

$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(VENV)/installed  ## fold six views of digits one by one, leave a report
	$(BIN)/viewfold demo

lint: $(VENV)/installed  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## everything a change has to pass
	$(BIN)/python -m pytest

bench: $(VENV)/installed  ## speed and memory, as ratios (minutes)
	$(BIN)/python benchmarks/fold.py
	$(BIN)/python benchmarks/store.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
