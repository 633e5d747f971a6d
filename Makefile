# Two commands: `make demo` shows the whole thing, `make test` checks it. Each sets up .venv by itself.
BIN := .venv/bin

.PHONY: demo test agreement setup build clean

demo: setup
	$(BIN)/autograder demo

test: setup
	$(BIN)/ruff check .
	$(BIN)/mypy autograder course_utils
	$(BIN)/autograder build --check
	$(BIN)/autograder verify
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
