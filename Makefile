# `make demo` and `make test` each need Python 3.11 or later and make, and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PAPER := PYTHONPATH=experiments $(BIN)/python -m paper
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo results test lint types unit fuzz format bench live engine quality numerics rl clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

# The environment is made anew whenever the dependencies change. It first holds what the
# demo needs, and no more than that until another target asks.
$(VENV)/demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[experiments]'
	touch $@

$(VENV)/ready: $(VENV)/demo
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/bench: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

# Numba does not notice when a kernel changes that another one calls. Whatever is compiled, or
# gives its constants to what is, imports the compiler's flags or limits.
$(VENV)/kernels: $(VENV)/demo src/figmn/kernels/compiler.py \
		$(shell grep -rl 'kernels.compiler' src --include='*.py')
	find src -name '*.nb[ci]' -delete
	touch $@

demo: $(VENV)/kernels ## The paper's experiments in three minutes; tables, and a report in output/
	$(PAPER) --quick $(ARGS)

results: $(VENV)/kernels ## The paper's experiments on real data (two hours or more); docs/results.md
	$(PAPER) --full --output output/full --markdown docs/results.md $(ARGS)

test: lint types unit ## Lint, types and all tests

lint: $(VENV)/ready ## Style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/ready ## Types
	$(BIN)/mypy

unit: $(VENV)/ready $(VENV)/kernels ## Tests alone, e.g. make unit ARGS=tests/test_learning.py
	$(BIN)/python -m pytest -n auto $(ARGS)

fuzz: $(VENV)/ready $(VENV)/kernels ## Look for finite input that makes an unsound model
	FIGMN_EXPLORE=1 $(BIN)/python -m pytest -n auto tests/test_numerics.py $(ARGS)

format: $(VENV)/ready ## Put the code into the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/bench $(VENV)/kernels ## Speed, beside river and batch EM
	$(BIN)/python benchmarks/speed.py $(ARGS)

live: $(VENV)/bench $(VENV)/kernels ## Time of each row, asked about and then learnt, beside river (about 10 minutes)
	PYTHONPATH=benchmarks:experiments $(BIN)/python -m live $(ARGS)

engine: $(VENV)/bench $(VENV)/kernels ## Many dimensions, beside BLAS-2, EM and gmr (about 10 minutes)
	PYTHONPATH=experiments $(BIN)/python benchmarks/engine.py $(ARGS)

quality: $(VENV)/bench $(VENV)/kernels ## The defaults, beside EM, batch models and river (about 20 minutes)
	PYTHONPATH=benchmarks:experiments $(BIN)/python -m quality $(ARGS)

numerics: $(VENV)/kernels ## Growth of rounding errors (about 10 minutes)
	PYTHONPATH=experiments $(BIN)/python benchmarks/numerics.py $(ARGS)

rl: $(VENV)/kernels ## Episodes to solve the paper's control tasks (an hour or two; finished runs are kept)
	$(PAPER) rl --full --output output/full $(ARGS)

clean: ## Remove the environment and everything made
	rm -rf $(VENV) output build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
