"""The command line as a whole: help, examples, exit codes, JSON, and completion in real shells."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import course_utils.terminal.main
from autograder.cli import main, parser
from course_utils.terminal.completion import SHELLS, completion_script

TALKS_TO_PEOPLE_ALONE = {"autograder demo", "autograder completion"}


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and everything below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from commands(below)


def example(text: str) -> list[str]:
    """The arguments of an epilog's example, without the program; eval "$(...)" is looked into."""
    words = shlex.split(text.removeprefix("Example: "))
    return shlex.split(words[1].strip("$()"))[1:] if words[0] == "eval" else words[1:]


def test_every_command_has_help_and_an_example_that_can_be_typed() -> None:
    for command in commands(parser()):
        assert command.description and command.epilog and command.epilog.startswith("Example: "), command.prog
        arguments = example(command.epilog)
        assert " ".join(["autograder", *arguments]).startswith(command.prog)
        if "--help" not in arguments:
            parser().parse_args(arguments)


def test_every_command_that_a_script_may_use_has_json() -> None:
    ends = [c for c in commands(parser()) if not any(isinstance(a, argparse._SubParsersAction) for a in c._actions)]
    silent = {c.prog for c in ends if "--json" not in c._option_string_actions}
    assert silent == TALKS_TO_PEOPLE_ALONE


def test_bad_input_is_a_sentence_and_with_json_an_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("There is no journal at ")
    assert main(["report", str(tmp_path / "nowhere"), "--json"]) == 2
    again = capsys.readouterr()
    assert json.loads(again.out) == {"exit": 2, "error": said.err.strip()} and again.err == said.err
    with pytest.raises(SystemExit, match="2"):
        main(["report"])


def test_an_interruption_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.classroom.report.write_report", interrupted)
    assert main(["report", "results"]) == 130 and capsys.readouterr().err == "Stopped.\n"


def toy() -> argparse.ArgumentParser:
    from course_utils.terminal.completion import offer

    made = argparse.ArgumentParser(prog="toy")
    made.add_argument("--level", choices=["low", "high"])
    below = made.add_subparsers(metavar="COMMAND")
    start = below.add_parser("start", help="it's a start")
    offer(start.add_argument("homework", nargs="*"), lambda: ["hw1_a", "hw2_b"])
    start.add_argument("--out", type=Path, help="where")
    start.add_argument("--json", action="store_true")
    deep = below.add_parser("deep").add_subparsers()
    deep.add_parser("down").add_argument("file", type=Path)
    return made


COMPLETED = {
    "toy ": ["start", "deep"],
    "toy st": ["start"],
    "toy --level ": ["low", "high"],
    "toy start hw2": ["hw2_b"],
    "toy start hw1_a ": ["hw1_a", "hw2_b"],
    "toy start --": ["--help", "--out", "--json"],
    "toy deep ": ["down"],
    "toy start --out some": ["some.txt"],
    "toy deep down some": ["some.txt"],
}


def test_bash_completes_commands_options_homeworks_and_files(tmp_path: Path) -> None:
    (tmp_path / "some.txt").touch()
    lines = [completion_script(toy(), "bash"), "shopt -s progcomp"]
    for typed in COMPLETED:
        words = typed.split(" ")
        lines.append(f"COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1} COMPREPLY=(); _toy_complete")
        # `complete -o default`: where nothing is offered, bash completes files
        lines.append('((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))')
        lines.append('echo "${COMPREPLY[@]}"')
    lines.append("complete -p toy")
    told = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=tmp_path, text=True, capture_output=True)
    assert told.returncode == 0 and told.stderr == ""
    *offered, registered = told.stdout.splitlines()
    found = {typed: [w for w in line.split() if w != "-h"] for typed, line in zip(COMPLETED, offered, strict=True)}
    assert found == COMPLETED
    assert "-o default" in registered and registered.endswith("-F _toy_complete toy")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_the_same(tmp_path: Path) -> None:
    (tmp_path / "some.txt").touch()
    script = [completion_script(toy(), "fish")]
    script += [f"complete -C {shlex.quote(typed)}; echo ====" for typed in COMPLETED]
    told = subprocess.run(["fish", "-N", "-c", "\n".join(script)], cwd=tmp_path, text=True, capture_output=True)
    assert told.returncode == 0 and told.stderr == ""
    answers = told.stdout.split("====\n")
    for typed, wanted in COMPLETED.items():
        offered = {line.split("\t")[0] for line in answers.pop(0).splitlines()}
        assert offered - {"-h"} == set(wanted), typed


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_the_script_and_registers_it() -> None:
    script = completion_script(toy(), "zsh") + "\necho $_comps[toy]"
    told = subprocess.run(["zsh", "-f", "-c", script], text=True, capture_output=True)
    assert told.returncode == 0 and "_bash_complete" in told.stdout and "_toy_complete" in told.stdout


def test_the_staff_s_own_command_completes_homeworks() -> None:
    for shell in SHELLS:
        script = completion_script(parser(), shell)
        assert "hw1_attention" in script and "solutions" in script and "dry-run" in script


def test_students_get_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in SHELLS:
        assert course_utils.terminal.main.main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert "hw1_attention" in script and "submit" in script and "again" in script
