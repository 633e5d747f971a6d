# Two commands: `make demo` shows the whole thing, `make test` checks it. Each sets up .venv by itself.
BIN := .venv/bin

.PHONY: demo test quick test-all agreement setup build clean

demo: setup
	$(BIN)/autograder demo

# Everything, on all cores; suites that are unchanged since they were proved are not proved again.
test: setup
	@$(BIN)/python tools/lanes

# About a minute: lint, types, changed suites, and the tests that start no box, browser or kernel.
quick: setup
	@$(BIN)/python tools/lanes --quick

# Everything, and every suite is proved again.
test-all: setup
	@$(BIN)/python tools/lanes --anew

# The whole example class through nbgrader, otter and Gradescope too; writes docs/agreement.md.
agreement: setup
	AUTOGRADER_AGREEMENT=docs/agreement.md $(BIN)/python -m pytest tests/frontends/test_agreement.py

build: setup
	$(BIN)/autograder build

setup:
	@tools/setup

clean:
	rm -rf .venv build results *.egg-info
