# Every command a person needs. `make help` lists them.
#
# Everything is made inside the project: .venv/ (Python packages), target/ (Rust), dist/ (wheels), demo-output/.
# A second call does only what has changed; the stamps are .venv/.made-* and dist/.built.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The sample log directory that a real broker wrote; give your own: make demo LOG_DIR=/var/lib/kafka/data
LOG_DIR ?= tests/data/log-dir
# The interpreter that .venv is made with.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
RUST_SOURCES := Cargo.toml $(shell find src -name '*.rs')
PYTHON_SOURCES := pyproject.toml README.md $(shell find python -name '*.py' -o -name '*.pyi' -o -name 'py.typed')

# cargo and maturin build against the interpreter of .venv, whatever else is on the PATH.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: tools-demo $(VENV)/.made-kbat ## read a broker's log directory with Spark: rows, a table, Parquet [LOG_DIR=/path]
	@$(BIN)/python -m kbat.spark.demo "$(LOG_DIR)" --output demo-output

.PHONY: test
test: tools-test clippy check-python test-rust test-python ## check and test everything, from nothing

.PHONY: test-rust
test-rust: ## test the Rust crate
	cargo test --features parquet

.PHONY: test-python
test-python: $(VENV)/.made-kbat ## test the Python package and the Spark data source
	$(BIN)/python -m pytest

.PHONY: matrix
matrix: ## run the Python tests with other versions of Python and Spark [PAIRS="python3.13:4.2.1"]
	.ci/matrix $(PAIRS)

.PHONY: lint
lint: clippy check-python ## check the code without running it, formatting included
	cargo fmt --check
	$(BIN)/ruff format --check

.PHONY: clippy
clippy: $(VENV)/.made-tools
	cargo clippy --all-targets --all-features -- -D warnings

.PHONY: check-python
check-python: $(VENV)/.made-kbat
	$(BIN)/ruff check
	$(BIN)/mypy
	cd $(VENV) && bin/python -m mypy.stubtest kbat._core

.PHONY: bench
bench: $(VENV)/.made-kbat ## run the benchmarks, Rust's and Python's
	cargo bench --features arrow
	$(BIN)/python benches/python/bench.py

.PHONY: docs
docs: ## build the Rust documentation and say where it is
	cargo doc --no-deps --features parquet
	@echo "open target/doc/kbat/index.html"

.PHONY: fuzz
fuzz: ## fuzz one target for a minute; needs a nightly Rust and cargo-fuzz [TARGET=name] [FUZZ_TIME=60]
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { \
	    echo "missing: cargo-fuzz; install it with: rustup toolchain install nightly && cargo install cargo-fuzz" >&2; exit 1; }
	cargo +nightly fuzz run $(or $(TARGET),$$(cargo +nightly fuzz list | head -n 1)) -- -max_total_time=$(or $(FUZZ_TIME),60)

.PHONY: wheel
wheel: tools-wheel dist/.built ## build the release wheel into dist/
	@ls dist/*.whl

.PHONY: clean
clean: ## remove everything that the other commands made
	rm -rf $(VENV) dist target demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse

.PHONY: tools-wheel tools-demo tools-test
tools-wheel:
	@.ci/check-tools cargo cc python >/dev/null
tools-demo:
	@.ci/check-tools cargo cc python java >/dev/null
tools-test:
	@.ci/check-tools cargo clippy cc python java >/dev/null

$(VENV)/.made-tools: constraints.txt
	@echo "making $(VENV)" >&2
	@PYTHON="$(PYTHON)" .ci/check-tools python >/dev/null
	@"$$(PYTHON="$(PYTHON)" .ci/check-tools python)" -m venv $(VENV)
	@$(PIP) install -c constraints.txt maturin
	@touch $@

dist/.built: $(VENV)/.made-tools $(RUST_SOURCES) $(PYTHON_SOURCES)
	@echo "building the release wheel; the first time takes some minutes" >&2
	@rm -rf target/wheel
	@$(BIN)/maturin build --release --quiet --interpreter $(BIN)/python --out target/wheel
	@rm -rf dist && mv target/wheel dist
	@touch $@

$(VENV)/.made-kbat: dist/.built
	@echo "installing kbat with what it is tested with into $(VENV)" >&2
	@$(PIP) install -c constraints.txt "$$(ls dist/*.whl)[dev]"
	@$(PIP) install --no-deps --force-reinstall dist/*.whl
	@touch $@
