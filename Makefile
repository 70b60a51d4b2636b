PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
NEWEST := .venv-newest
CONSTRAINTS ?= constraints.txt
PIP := -m pip --disable-pip-version-check --quiet
# Neighbours stay together as long as both processes have work: a fixture of a file is made once.
PYTEST := -m pytest -n 2 --dist worksteal
# Idle threads of linear algebra sleep, or they keep the cores from the other process. Not in
# conftest.py: numpy reads this when it is imported, which is earlier.
test quick test-oldest test-newest coverage: export OPENBLAS_THREAD_TIMEOUT := 4
test quick test-oldest test-newest coverage: export OMP_WAIT_POLICY := passive

.PHONY: demo test quick test-spark test-oldest test-newest coverage constraints architecture lint bench history clean
.DEFAULT_GOAL := test

$(VENV)/installed: pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS),--upgrade --upgrade-strategy eager) \
		--editable '.[dev]'
	touch $@

demo: $(VENV)/installed  ## fold six views of digits one by one, leave a report
	$(BIN)/viewfold demo

lint: $(VENV)/installed  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## everything a change has to pass
	$(BIN)/python $(PYTEST)

quick: $(VENV)/installed  ## the tests but for the slow ones, without lint
	$(BIN)/python $(PYTEST) -m "not slow"

test-spark: $(VENV)/installed  ## the tests of SparkEngine: installs pyspark (0.5 GB), needs Java
	$(BIN)/python $(PIP) install --constraint constraints.txt --editable '.[spark]'
	$(BIN)/python -m pytest tests/test_engine_spark.py

$(OLDEST)/installed: pyproject.toml
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) install uv
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python \
		--resolution lowest-direct --editable '.[dev]'
	touch $@

# The checks of scikit-learn 1.6 cannot be imported beside array-api-compat without this variable.
test-oldest: $(OLDEST)/installed  ## the tests on the lowest versions that pyproject.toml allows
	SCIPY_ARRAY_API=1 $(OLDEST)/bin/python $(PYTEST)

test-newest:  ## the tests on the newest versions that there are
	rm -f $(NEWEST)/installed
	$(MAKE) VENV=$(NEWEST) CONSTRAINTS= $(NEWEST)/installed
	$(NEWEST)/bin/python $(PYTEST)

coverage: $(VENV)/installed  ## lines that no test reaches, in the rooms that [tool.coverage] names
	$(BIN)/python $(PYTEST) --cov --cov-report=term-missing:skip-covered

constraints: $(VENV)/installed  ## write down the versions that are installed
	(sed -n '/^#/p' constraints.txt; $(BIN)/python $(PIP) freeze --exclude-editable) > constraints.new
	mv constraints.new constraints.txt

architecture: $(VENV)/installed  ## write docs/architecture.md from the code
	$(BIN)/python docs/make_architecture.py

bench: $(VENV)/installed  ## speed and memory, as ratios (minutes)
	$(BIN)/python benchmarks/fold.py
	$(BIN)/python benchmarks/store.py

history: $(VENV)/installed  ## seconds of a fold, kept in .benchmarks and compared with the last run
	$(BIN)/python -m pytest --override-ini=addopts=-q benchmarks/history.py --benchmark-autosave \
		--benchmark-columns=min,median,rounds --benchmark-sort=name \
		$(if $(wildcard .benchmarks/*/*.json),--benchmark-compare)

clean:
	rm -rf $(VENV) $(OLDEST) $(NEWEST) .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
