"""A script that lets a shell complete a command line, made from its argparse parser: bash, zsh and fish."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True)
class _Option:
    """An option of a command: how it is written, and what may follow it."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    words: tuple[str, ...]  # what may follow; files where a value is taken and nothing is listed
    files: bool


@dataclass(frozen=True)
class _Level:
    """What can be typed after these words: `("autograder", "grade")`."""

    path: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]  # name and help
    options: tuple[_Option, ...]
    words: tuple[str, ...]  # for what stands without an option
    files: bool  # whether a file may stand there


def offer(action: argparse.Action, words: Callable[[], Sequence[str]]) -> None:
    """Let an argument be completed with these words; they are asked for when a script is made."""
    action.completed_with = words  # type: ignore[attr-defined]


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell; `eval "$(autograder completion bash)"` in its start file puts it to work."""
    write = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]
    return "\n".join(write(parser.prog, list(_levels(parser, (parser.prog,))))) + "\n"


def _levels(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[_Level]:
    """The parser's levels, the outermost first."""
    below: dict[str, argparse.ArgumentParser] = {}
    helps: dict[str, str] = {}
    options: list[_Option] = []
    words: list[str] = []
    files = False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below |= action.choices
            helps |= {choice.dest: choice.help or "" for choice in action._choices_actions}
        elif action.option_strings:
            takes = action.nargs != 0
            known = _words(action)
            file = takes and not known and action.type is Path
            options.append(_Option(tuple(action.option_strings), action.help or "", takes, known, file))
        else:
            words += _words(action)
            files = files or action.type is Path
    commands = tuple((name, helps.get(name, "")) for name in below)
    yield _Level(path, commands, tuple(options), tuple(words), files)
    for name, child in below.items():
        yield from _levels(child, (*path, name))


def _words(action: argparse.Action) -> tuple[str, ...]:
    asked = getattr(action, "completed_with", None)
    return tuple(asked()) if asked else tuple(map(str, action.choices or ()))


def _bash(program: str, levels: list[_Level]) -> Iterator[str]:
    """One function: it finds the level by the words typed so far, then offers what fits there."""
    yield f'# completion for {program}; in ~/.bashrc: eval "$({program} completion bash)"'
    yield from _function(program, levels, "COMP_WORDS", "COMP_CWORD")
    yield f"complete -o default -o bashdefault -F _{program}_complete {program}"


def _function(program: str, levels: list[_Level], typed: str, at: str) -> Iterator[str]:
    yield f"_{program}_complete() {{"
    yield f'  local current="${{{typed}[{at}]}}" before="${{{typed}[{at}-1]}}" level={program} words="" i'
    yield f"  for ((i = 1; i < {at}; i++)); do"
    yield f'    case "$level ${{{typed}[i]}}" in'
    for level in levels[1:]:
        yield f"      {shlex.quote(' '.join(level.path))}) level={shlex.quote(' '.join(level.path))} ;;"
    yield "    esac"
    yield "  done"
    yield '  case "$level $before" in'
    for level in levels:
        for option in level.options:
            if option.takes_value:
                patterns = " | ".join(shlex.quote(f"{' '.join(level.path)} {name}") for name in option.names)
                yield f"    {patterns}) words={shlex.quote(' '.join(option.words))}; _{program}_offer; return ;;"
    yield "  esac"
    yield '  case "$level" in'
    for level in levels:
        offered = [name for name, _ in level.commands] + list(level.words)
        flags = [name for option in level.options for name in option.names]
        yield f"    {shlex.quote(' '.join(level.path))})"
        yield f"      words={shlex.quote(' '.join(offered))}"
        yield f"      [[ $current == -* ]] && words={shlex.quote(' '.join(flags))} ;;"
    yield "  esac"
    yield f"  _{program}_offer"
    yield "}"
    yield f"_{program}_offer() {{  # nothing to offer: the shell completes files"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"


def _zsh(program: str, levels: list[_Level]) -> Iterator[str]:
    """zsh runs the same function through its own layer for bash's completions."""
    yield f"#compdef {program}"
    yield f'# completion for {program}; in ~/.zshrc: eval "$({program} completion zsh)"'
    yield "autoload -Uz compinit bashcompinit"
    yield "(( $+functions[compdef] )) || compinit"
    yield "bashcompinit"
    yield from _function(program, levels, "COMP_WORDS", "COMP_CWORD")
    yield f"complete -o default -o bashdefault -F _{program}_complete {program}"


def _fish(program: str, levels: list[_Level]) -> Iterator[str]:
    """A line for every word that can be completed, with the help text beside it."""
    yield f"# completion for {program}; in config.fish: {program} completion fish | source"
    yield f"complete -c {program} -f"
    for level in levels:
        here = _fish_condition(level)
        start = f"complete -c {program} -n {shlex.quote(here)}"
        for name, help in level.commands:
            yield f"{start} -a {shlex.quote(name)} -d {shlex.quote(help)}"
        if level.words:
            yield f"{start} -a {shlex.quote(' '.join(level.words))}"
        if level.files:
            yield f"{start} -F"
        for option in level.options:
            flags = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
            if option.words:
                flags.append(f"-x -a {shlex.quote(' '.join(option.words))}")
            elif option.takes_value:
                flags.append("-r -F" if option.files else "-x")
            yield f"{start} {' '.join(flags)} -d {shlex.quote(option.help)}"


def _fish_condition(level: _Level) -> str:
    """That this level's words have been typed, and none of those that lead further down."""
    typed = [f"__fish_seen_subcommand_from {word}" for word in level.path[1:]]
    further = " ".join(name for name, _ in level.commands)
    return "; and ".join([*typed, *([f"not __fish_seen_subcommand_from {further}"] if further else [])]) or "true"
