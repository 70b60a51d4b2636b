PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
NEWEST := .venv-newest
CORE := .venv-core
DOCKER ?= docker
CONSTRAINTS ?= constraints.txt
PIP := -m pip --disable-pip-version-check --quiet
# Neighbours stay together as long as both processes have work: a fixture of a file is made once.
PYTEST := -m pytest -n 2 --dist worksteal
# Two processes, so that more threads of linear algebra would take the cores from each other. Not
# in conftest.py: numpy reads this when it is imported, which is earlier.
test quick test-research test-oldest test-newest coverage: export OPENBLAS_NUM_THREADS := 1
test quick test-research test-oldest test-newest coverage: export OMP_NUM_THREADS := 1
# Commands that tests start find the library compiled, also where Python was told not to write it.
test quick test-research test-oldest test-newest coverage: export PYTHONDONTWRITEBYTECODE :=

# Warnings are errors, links to names that are not there are warnings.
SPHINX := $(BIN)/sphinx-build -W --keep-going -n -j 2 -q

.PHONY: demo docs linkcheck page browser test test-research quick test-spark test-oldest test-newest coverage package core image constraints architecture leaderboard lint bench history clean
.DEFAULT_GOAL := test

$(VENV)/installed: pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS),--upgrade --upgrade-strategy eager) \
		--editable '.[dev]'
	touch $@

# Into the same environment; `make test` does not need it.
$(VENV)/research: $(VENV)/installed research/pyproject.toml
	$(BIN)/python $(PIP) install $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable 'research[dev]'
	touch $@

demo: $(VENV)/installed  ## fold six views of digits one by one, leave a report
	$(BIN)/viewfold demo

lint: $(VENV)/installed  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(VENV)/installed  ## everything a change has to pass
	$(MAKE) --no-print-directory --jobs 2 lint docs
	$(BIN)/python $(PYTEST)

test-research: $(VENV)/research  ## style, types and tests of research/
	cd research && ../$(BIN)/ruff check . && ../$(BIN)/ruff format --check . && ../$(BIN)/mypy && ../$(BIN)/lint-imports
	cd research && ../$(BIN)/python $(PYTEST)

# Tests of pages skip where there is none.
browser:  ## install Chromium for the tests of pages, where Debian's packages can be installed
	@command -v chromium chromium-browser google-chrome >/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
			&& apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
		|| echo "no Chromium, and none could be installed: the tests of pages will be skipped"

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

package: $(VENV)/installed  ## sdist and wheel, in dist/, looked over and tried
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	DIST=$(CURDIR)/dist $(BIN)/python -m pytest tests/test_package.py

# The only target that finds out what a user gets: nothing of the clone is within reach.
core: package  ## the wheel in an empty environment: from two CSV files to a report, and its size
	rm -rf $(CORE)
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/python $(PIP) install $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) dist/*.whl
	cp tests/core_tour.py $(CORE)
	cd $(CORE) && bin/python core_tour.py --messages
	$(CORE)/bin/python $(PIP) uninstall --yes setuptools pip
	du -sm $(CORE)

image:  ## the image of the Dockerfile, tried once: needs a container engine
	$(DOCKER) build --tag viewfold .
	$(DOCKER) run --rm viewfold --version

leaderboard: $(VENV)/research  ## write the tables of research/docs/baselines.md from research/benchmarks/leaderboard
	$(BIN)/python research/docs/make_leaderboard.py $(RESULTS)

constraints: $(VENV)/installed  ## write down the versions that are installed
	(sed -n '/^#/p' constraints.txt; $(BIN)/python $(PIP) freeze --exclude-editable) > constraints.new
	mv constraints.new constraints.txt

architecture: $(VENV)/installed  ## write docs/architecture.md from the code
	$(BIN)/python docs/make_architecture.py

page:  ## build the page's script from page/ into src/viewfold/web/static: needs npm
	cd page && npm ci --no-audit --no-fund && npm run build

docs: $(VENV)/installed  ## the site, in docs/_build/html: all examples are run, and a warning is an error
	$(SPHINX) -b html docs docs/_build/html

linkcheck: $(VENV)/installed  ## whether addresses in docs/ answer: needs the network
	$(SPHINX) -b linkcheck docs docs/_build/linkcheck

bench: $(VENV)/research  ## speed and memory, as ratios (minutes)
	$(BIN)/python research/benchmarks/fold.py
	$(BIN)/python research/benchmarks/store.py

history: $(VENV)/research  ## seconds of a fold, kept in .benchmarks and compared with the last run
	$(BIN)/python -m pytest --override-ini=addopts=-q research/benchmarks/history.py --benchmark-autosave \
		--benchmark-columns=min,median,rounds --benchmark-sort=name \
		$(if $(wildcard .benchmarks/*/*.json),--benchmark-compare)

clean:
	rm -rf $(VENV) $(OLDEST) $(NEWEST) $(CORE) docs/_build docs/auto_gallery .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
