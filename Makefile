# Two commands: `make demo` shows the whole thing, `make test` checks it. Each sets up .venv by itself.
BIN := .venv/bin

.PHONY: demo test suites package agreement setup build clean

demo: setup
	$(BIN)/autograder demo

# Two lanes side by side: the suites' own exam takes what the tests of the package leave of the cores.
test: setup
	@$(MAKE) --no-print-directory -j2 suites package

suites:
	$(BIN)/ruff check .
	nice $(BIN)/mypy autograder course_utils
	nice $(BIN)/autograder build --check
	nice $(BIN)/autograder verify

package:
	$(BIN)/python -m pytest

# The whole example class through nbgrader, otter and Gradescope too; writes docs/agreement.md.
agreement: setup
	AUTOGRADER_AGREEMENT=docs/agreement.md $(BIN)/python -m pytest tests/frontends/test_agreement.py

build: setup
	$(BIN)/autograder build

setup:
	@tools/setup

clean:
	rm -rf .venv build results *.egg-info
