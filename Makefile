# `make demo` and `make test` do everything on a fresh clone; they need Python 3.11 or newer and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MEMBERS := ./core ./learners $(patsubst %/pyproject.toml,%,$(wildcard ./plugins/*/pyproject.toml)) .
WORKERS ?= 2
CHECK := 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, as in: make PYTHON=python3.11")'

INSTALLED := $(VENV)/.installed

.PHONY: demo test lint format build cpu-data version clean

demo: $(INSTALLED)
	$(BIN)/autoheur demo

# A choice of tests: make test ARGS="tests/dataset -k parquet"
test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The wheel is built from the sdist, so the sdist is shown to be complete.
build: $(INSTALLED)
	rm -rf dist
	for member in $(MEMBERS); do $(BIN)/python -m build --no-isolation --outdir dist $$member || exit 1; done

# Measures every operator on this machine's CPU; the machine must have nothing else to do. Kept in build/cpu-data, with
# what was learned and the figures; the measurements alone go beside the operators.
CPU_SECONDS ?= 3600
cpu-data: $(INSTALLED)
	benchmarks/new_device.sh --device cpu --seconds $(CPU_SECONDS) --out build/cpu-data
	for operator in pad_mm bmm addmm; do \
		mkdir -p plugins/$$operator/data && for part in learn held-out; do \
			cp build/cpu-data/$$operator-$$part.parquet plugins/$$operator/data/cpu-$$part.parquet || exit 1; done; done

version: $(INSTALLED)
	@test -n "$(V)" || { echo 'Which version? make version V=0.2.0' >&2; exit 2; }
	$(BIN)/python tools/set_version.py $(V)

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(INSTALLED): constraints.txt requirements-dev.txt $(MEMBERS:%=%/pyproject.toml)
	test -x $(BIN)/python || { $(PYTHON) -c $(CHECK) && $(PYTHON) -m venv $(VENV); }
	$(BIN)/python -m pip install -c constraints.txt -r requirements-dev.txt
	@touch $@
