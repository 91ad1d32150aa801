# The two main commands are `make serve` and `make test`. `make help` lists all of them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# pytest workers, for two cores. Fault tests mostly wait, so they run in parallel with the other tests.
JOBS ?= 6
FAULT_JOBS ?= 2
# Tests start hundreds of processes: store bytecode even if the shell disables it.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help serve demo test test-all times faults lint format setup contract docs shots bench lock clean
.DEFAULT_GOAL := help

help:
	@echo "make serve    set up and run the hub on http://127.0.0.1:8000"
	@echo "make demo     set up and run a hub with example content, an example app and a receiver; prints a tour"
	@echo "              (make demo RESET=1 starts anew)"
	@echo "make test     set up and run every test (small fault counts)"
	@echo "make test-all run tests of pages and parameters on PostgreSQL too, and more random examples"
	@echo "make times    print where the last make test spent its time"
	@echo "make faults   run the fault tests with full counts (about 40 minutes on two cores)"
	@echo "make lint     run ruff, mypy, and a check for idioms to avoid"
	@echo "make format   format the code with ruff"
	@echo "make shots    take screenshots of every page, both themes, phone and desktop, and the README's from the demo"
	@echo "make bench    run the benchmarks and print tables of ratios"
	@echo "make contract regenerate contract/ and docs/reference/ from the routes, a running hub and the code"
	@echo "make docs     build the documentation as a static site in build/docs, and check its links"
	@echo "make setup    install everything, for running single tests"
	@echo "make clean    remove the virtual environment and caches"
	@echo "make lock     resolve the pinned requirements again"

serve: $(VENV)/server.stamp
	@$(BIN)/hubgate serve

# The shell is replaced, so that signals reach the demo.
demo: $(VENV)/server.stamp
	@exec $(BIN)/hubgate demo $(if $(RESET),--reset)

test: $(VENV)/dev.stamp $(VENV)/clients.stamp
	@$(BIN)/python -m tests.bed.browser
	@$(BIN)/python -m tests.bed.groups $(JOBS) $(FAULT_JOBS)

test-all: $(VENV)/dev.stamp $(VENV)/clients.stamp
	@$(BIN)/python -m tests.bed.browser
	@$(BIN)/python -m tests.bed.groups $(JOBS) $(FAULT_JOBS) --all-engines

times:
	@$(BIN)/python -m tests.bed.times

faults: $(VENV)/dev.stamp $(VENV)/clients.stamp
	@$(BIN)/python -m pytest -v -m faults --fault-count 200 -n 2 --dist worksteal --durations 10

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m tests.idioms
	@$(BIN)/mypy

format: $(VENV)/dev.stamp
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

shots: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.bed.browser
	@$(BIN)/python -m tests.browser.shots shots
	@$(BIN)/python -m tests.browser.pictures docs/pictures

setup: $(VENV)/dev.stamp $(VENV)/clients.stamp

contract: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.protocol.contract
	@$(BIN)/python -m tests.protocol.golden
	@$(BIN)/python -m tests.docs.reference

docs: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.docs.site build/docs

bench: $(VENV)/dev.stamp $(VENV)/bench.stamp
	@$(BIN)/python -m bench

# Third-party clients that tests run against the hub, each in a separate environment.
CLIENTS := $(basename $(notdir $(wildcard requirements/clients/*.in)))
# Programs that the benchmarks compare against.
PEERS := $(basename $(notdir $(wildcard requirements/bench/*.in)))

COMPILE = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet --upgrade
COMPILE_SELF = $(COMPILE) pyproject.toml --extra server --extra postgres --group build
lock: $(VENV)/dev.stamp
	$(COMPILE_SELF) -o requirements/server.txt
	$(COMPILE_SELF) --group dev -o requirements/dev.txt
	$(foreach client,$(CLIENTS),$(COMPILE) requirements/clients/$(client).in -o requirements/clients/$(client).txt &&) true
	$(COMPILE) requirements/clients/git-lfs/go.in -o requirements/clients/git-lfs/go.txt
	$(BIN)/python -m tests.bed.git_lfs lock
	$(BIN)/python -m tests.bed.s3_server lock
	$(BIN)/python -m tests.bed.node lock clients
	$(foreach peer,$(PEERS),$(COMPILE) requirements/bench/$(peer).in -o requirements/bench/$(peer).txt &&) true
	$(BIN)/python -m tests.bed.node lock bench

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/created.stamp:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("hubgate needs Python 3.11 or newer, this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 " + "serve")'
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# The locked build tools build the package itself, so that nothing unpinned is fetched.
INSTALL_SELF = $(PIP) install --no-deps --no-build-isolation --editable .

$(VENV)/server.stamp: $(VENV)/created.stamp requirements/server.txt pyproject.toml
	@echo "Installing the server's dependencies, once (a minute or two without further output)"
	@$(PIP) install --require-hashes -r requirements/server.txt
	@$(INSTALL_SELF)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/server.stamp requirements/dev.txt
	@echo "Installing the test tools"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/clients.stamp: $(CLIENTS:%=$(VENV)/clients/%.stamp) $(VENV)/clients/js.stamp $(VENV)/clients/git-lfs.stamp $(VENV)/clients/versitygw.stamp
	@touch $@

$(VENV)/clients/js.stamp: requirements/clients/js/package.json requirements/clients/js/package-lock.json | $(VENV)/dev.stamp
	@echo "Installing the JavaScript clients"
	@$(BIN)/python -m tests.bed.node install clients
	@touch $@

$(VENV)/clients/git-lfs.stamp: $(wildcard requirements/clients/git-lfs/*) | $(VENV)/dev.stamp
	@echo "Building git-lfs (a minute or two)"
	@$(BIN)/python -m tests.bed.git_lfs install
	@touch $@

# The S3-compatible server of the tests, with the toolchain of git-lfs.
$(VENV)/clients/versitygw.stamp: $(wildcard requirements/clients/versitygw/*) requirements/clients/git-lfs/go.txt | $(VENV)/dev.stamp
	@echo "Building versitygw (a minute or two)"
	@$(BIN)/python -m tests.bed.s3_server install
	@touch $@

# Queues and providers that the benchmarks compare against.
$(VENV)/bench.stamp: $(PEERS:%=$(VENV)/bench/%.stamp) $(VENV)/bench/js.stamp
	@touch $@

$(VENV)/bench/js.stamp: $(wildcard requirements/bench/js/*) | $(VENV)/dev.stamp
	@echo "Installing the JavaScript programs that the benchmarks compare against"
	@$(BIN)/python -m tests.bed.node install bench
	@touch $@

$(VENV)/bench/%.stamp: requirements/bench/%.txt | $(VENV)/dev.stamp
	@echo "Installing the $* that the benchmarks compare against"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/bench/$*
	@$(BIN)/uv pip install --quiet --python $(VENV)/bench/$* --require-hashes -r $<
	@touch $@

$(VENV)/clients/%.stamp: requirements/clients/%.txt | $(VENV)/dev.stamp
	@echo "Installing the client $*"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/clients/$*
	@$(BIN)/uv pip install --quiet --python $(VENV)/clients/$* --require-hashes -r $<
	@touch $@
