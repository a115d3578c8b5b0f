# All commands. `make help` lists them.
#
# Everything is made inside the project: .venv/ (Python packages), target/ (Rust), dist/ (wheels), demo-output/.
# A second call does only what has changed; the stamps are .venv/.made-* and dist/.built.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The sample log directory that a real broker wrote. For your own: make demo LOG_DIR=/var/lib/kafka/data
LOG_DIR ?= tests/data/log-dir
# The interpreter that .venv is made with.
PYTHON ?= python3

VENV := .venv
# Cargo.lock with the versions of constraints-cargo.txt.
LOCK := target/.made-lock
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
RUST_SOURCES := Cargo.toml $(shell find src -name '*.rs')
JAVA_SOURCES := java/build.py java/ivy.py $(shell find java/kbat -name '*.java')
# The library that Spark's JVM loads, and the jar that holds it.
JVM_LIBRARY := target/java/libkbat_jvm.$(if $(filter Darwin,$(shell uname)),dylib,so)
JAR := python/kbat/spark/jars/kbat-spark.jar
PYTHON_SOURCES := pyproject.toml README.md $(shell find python -name '*.py' -o -name '*.pyi' -o -name 'py.typed')

# cargo and maturin build against the interpreter of .venv, whatever else is on the PATH.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# The recipes look for libraries and documentation below target/, wherever the user's own settings of cargo put them.
export CARGO_TARGET_DIR := $(CURDIR)/target

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: tools-demo $(VENV)/.made-demo ## read a broker's log directory with Spark: rows, a table, Parquet [LOG_DIR=/path]
	@$(BIN)/python examples/demo/spark_demo.py "$(LOG_DIR)" --output demo-output
	@printf '%s\n' '' 'Next:' \
	    '  make demo LOG_DIR=/path/to/log.dirs   # the same for your own logs, which are only read' \
	    '  .venv/bin/python                      # then: import kbat; kbat.scan("$(LOG_DIR)").to_pandas()' \
	    '  make wheel                            # prints the line that installs kbat into your environment'

.PHONY: test
test: tools-test clippy check-python test-rust test-python ## check and test everything, from scratch

.PHONY: test-rust
test-rust: $(LOCK) ## test the Rust crate
	cargo test --features parquet,plan,text,jvm

.PHONY: test-python
test-python: $(VENV)/.made-kbat ## test the Python package and the Spark data source
	$(BIN)/python -m pytest

# Servers of object stores; Azurite 3.36 and later need Node.js 22.
SERVERS := target/servers
VERSITYGW := $(SERVERS)/bin/versitygw
AZURITE := $(SERVERS)/node_modules/.bin/azurite-blob
STORE_TESTS := test_stores test_store_options test_store_reads test_store_writes test_store_faults test_cli_store_writes
S3_TESTS := $(STORE_TESTS) test_cli_stores test_spark_stores test_spark_store_options test_spark_store_streams

.PHONY: test-stores
test-stores: tools-stores $(VENV)/.made-kbat $(VERSITYGW) $(AZURITE) ## test stores with versitygw and Azurite, which it installs
	KBAT_TEST_STORE=versitygw $(BIN)/python -m pytest $(S3_TESTS:%=tests/python/%.py)
	KBAT_TEST_STORE=azurite $(BIN)/python -m pytest $(STORE_TESTS:%=tests/python/%.py)

$(VERSITYGW):
	@echo "compiling versitygw; the first time takes some minutes" >&2
	@GOBIN=$(CURDIR)/$(@D) go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

$(AZURITE):
	@npm install --prefix $(SERVERS) --no-audit --no-fund --loglevel error azurite@3.35.0

.PHONY: test-long
test-long: $(VENV)/.made-kbat test-jvm ## run the tests that take minutes each
	$(BIN)/python -m pytest -m long

.PHONY: test-jvm
test-jvm: $(VENV)/.made-kbat ## run all tests of Spark with the data source of the JVM
	KBAT_TEST_ENGINE=jvm $(BIN)/python -m pytest tests/python/test_spark*.py

.PHONY: soak
soak: $(VENV)/.made-kbat ## run a streaming query for 20 minutes, and kill its processes [SOAK_SECONDS=1200] [ENGINE=jvm]
	$(BIN)/python tests/python/soak.py --seconds $(or $(SOAK_SECONDS),1200) --engine $(or $(ENGINE),jvm)

.PHONY: matrix
matrix: ## run the Python tests with other versions of Python and Spark [PAIRS="python3.13:4.2.1"]
	.ci/matrix $(PAIRS)

.PHONY: lint
lint: clippy check-python check-words ## check the code and its English without running it, formatting included
	cargo fmt --check
	$(BIN)/ruff format --check

.PHONY: check-words
check-words: $(VENV)/.made-tools
	$(BIN)/python tests/python/words.py

.PHONY: clippy
clippy: $(VENV)/.made-tools $(LOCK)
	cargo clippy --all-targets --all-features -- -D warnings
	cargo check --quiet

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
docs: tools-docs $(VENV)/.made-docs $(LOCK) ## build the documentation, Python's and Rust's, and check every link
	rm -rf site target/doc
	$(BIN)/python benches/python/chart.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --features parquet,plan,text --quiet
	cp -R target/doc site/rust
	.ci/check-links site *.md
	@echo "open site/index.html"

.PHONY: man
man: $(VENV)/.made-kbat ## write the man pages of the command kbat into target/man/man1
	@$(BIN)/python -m kbat.cli.manual target/man/man1

.PHONY: fuzz
fuzz: ## fuzz one target for a minute; needs a nightly Rust and cargo-fuzz [TARGET=name] [FUZZ_TIME=60]
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { \
	    echo "missing: cargo-fuzz; install it with: rustup toolchain install nightly && cargo install cargo-fuzz" >&2; exit 1; }
	cargo +nightly fuzz run $(or $(TARGET),$$(cargo +nightly fuzz list | head -n 1)) -- -max_total_time=$(or $(FUZZ_TIME),60)

.PHONY: wheel
wheel: tools-wheel dist/.built ## build the release wheel into dist/ and print the line that installs it
	@echo "built $$(ls dist/*.whl); install it with:"
	@echo "  pip install '$(CURDIR)/$$(ls dist/*.whl)[spark]'"
	@echo "  # or [polars], [duckdb], [pandas], [cli], also several: [polars,cli]"

.PHONY: jar
jar: tools-wheel $(JAR) ## build the jar for Spark's JVM, which the wheel includes
	@echo "built $(JAR)"

.PHONY: java-library
java-library: $(JVM_LIBRARY)

.PHONY: clean
clean: ## remove everything that the other commands made
	rm -rf $(VENV) $(JAR) dist target site demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse

.PHONY: tools-wheel tools-demo tools-test tools-docs tools-stores
tools-wheel:
	@.ci/check-tools cargo cc python java >/dev/null
tools-demo:
	@.ci/check-tools cargo cc python java >/dev/null
tools-stores:
	@.ci/check-tools cargo cc python java go npm >/dev/null
tools-docs:
	@.ci/check-tools cargo cc python >/dev/null
tools-test:
	@.ci/check-tools cargo clippy cc python java >/dev/null

$(VENV)/.made-tools: constraints.txt
	@echo "making $(VENV)" >&2
	@PYTHON="$(PYTHON)" .ci/check-tools python >/dev/null
	@"$$(PYTHON="$(PYTHON)" .ci/check-tools python)" -m venv $(VENV)
	@$(PIP) install -c constraints.txt maturin
	@touch $@

$(LOCK): Cargo.toml constraints-cargo.txt .ci/pin-crates
	@.ci/pin-crates
	@mkdir -p target
	@touch $@

# cargo names the library after the crate, as it names maturin's.
$(JVM_LIBRARY): $(LOCK) $(RUST_SOURCES)
	@echo "building the library for Spark's JVM; the first time takes some minutes" >&2
	@cargo rustc --release --lib --crate-type cdylib --features jvm --quiet
	@mkdir -p $(@D)
	@cp target/release/libkbat$(suffix $@) $@

# Ivy, which comes with pyspark, fetches the compiler.
$(VENV)/.made-ivy: $(VENV)/.made-tools
	@echo "installing Spark into $(VENV)" >&2
	@$(PIP) install -c constraints.txt pyspark
	@touch $@

$(JAR): $(VENV)/.made-ivy $(JVM_LIBRARY) $(JAVA_SOURCES)
	@$(BIN)/python java/build.py --library $(JVM_LIBRARY)

dist/.built: $(VENV)/.made-tools $(LOCK) $(RUST_SOURCES) $(PYTHON_SOURCES) $(JAR)
	@echo "building the release wheel; the first time takes some minutes" >&2
	@rm -rf target/wheel
	@mkdir -p target
	@$(BIN)/maturin build --release --quiet --interpreter $(BIN)/python --out target/wheel >target/wheel.log 2>&1 || { \
	    cat target/wheel.log >&2; exit 1; }
	@rm -rf dist && mv target/wheel dist
	@touch $@

# The demo needs Spark and pyarrow, but no tools of the tests.
$(VENV)/.made-demo: dist/.built
	@echo "installing kbat and Spark into $(VENV)" >&2
	@$(PIP) install -c constraints.txt "$$(ls dist/*.whl)[spark]"
	@$(PIP) install --no-deps --force-reinstall dist/*.whl
	@touch $@

# The site is made from the sources: no wheel is needed.
$(VENV)/.made-docs: $(VENV)/.made-tools pyproject.toml
	@echo "installing the tools of the documentation into $(VENV)" >&2
	@$(PIP) install -c constraints.txt $$($(BIN)/python -c "import tomllib; \
	    print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	@touch $@

$(VENV)/.made-kbat: dist/.built
	@echo "installing kbat with what it is tested with into $(VENV)" >&2
	@$(PIP) install -c constraints.txt "$$(ls dist/*.whl)[dev]"
	@$(PIP) install --no-deps --force-reinstall dist/*.whl
	@touch $@
