# Two commands: `make demo` shows the whole thing, `make test` checks it. Each sets up .venv by itself.
BIN := .venv/bin

.PHONY: demo test setup build clean

demo: setup
	$(BIN)/autograder demo

test: setup
	$(BIN)/ruff check .
	$(BIN)/mypy autograder course_utils
	$(BIN)/autograder build --check
	$(BIN)/autograder verify
	$(BIN)/python -m pytest

build: setup
	$(BIN)/autograder build

setup:
	@tools/setup

clean:
	rm -rf .venv build results *.egg-info
