"""The `course` command for students."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from course_utils.terminal.check import LIMIT
from course_utils.terminal.completion import SHELLS, completion_script, offer
from course_utils.terminal.refusals import Refusal

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
DATA = {  # what `course data` knows: the room, the module and the function that tells about it
    "cifar10": ("hw5", "image_sets", "tell_cifar10"),
    "fashion": ("hw5", "image_sets", "tell_fashion"),
    "gpt2": ("hw6", "gpt2_file", "tell_gpt2"),
    "multi30k": ("hw4", "captions", "tell_multi30k"),
    "siglip": ("hw5", "published_files", "tell_siglip"),
    "vit": ("hw5", "published_files", "tell_vit"),
}
FETCHED = ("cifar10", "fashion", "multi30k")  # the others one fetches by hand


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when all is well, 1 when a check fails, 2 for something that cannot be used."""
    options = _parser().parse_args(argv)
    try:
        return int(options.run(options))
    except Refusal as error:
        if getattr(options, "json", False):
            _print_json({"exit": BAD_INPUT, "error": str(error)})
        print(error, file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="course",
        description="Help with the course's homeworks, from a fresh copy to the zip that you hand in.",
        epilog="Example: course check --help",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    doctor = _command(commands, "doctor", _doctor, "look whether this machine is ready", "course doctor")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")

    start = _command(
        commands, "start", _start, "unpack a fresh copy of a homework, never over one that is there", "course start hw1"
    )
    _take_homework(start, "such as hw1 or hw1_attention, or the zip that you downloaded")
    start.add_argument("--to", type=Path, default=Path(), metavar="DIR", help="make its folder here (default: here)")
    start.add_argument("--again", action="store_true", help="one more copy beside the one that is there")
    start.add_argument("--json", action="store_true", help="print what was done as JSON")

    check = _command(
        commands, "check", _check, "run the public checks of your notebook; plots and trainings are left out",
        "course check hw1 --question q1_1",
    )  # fmt: skip
    _add_notebook(check)
    check.add_argument("--question", help="check this one alone, such as q1_1")
    _add_running(check)

    progress = _command(
        commands, "progress", _progress, "show what is done, what is left, and how long that takes", "course progress"
    )
    _take_homework(progress, "default: every homework here and one folder below", nargs="?")
    _add_running(progress)

    submit = _command(
        commands, "submit", _submit, "look your notebook over and write the zip to hand in", "course submit hw1"
    )
    _add_notebook(submit)
    submit.add_argument("--out", type=Path, metavar="FILE", help="the zip (default: HOMEWORK-submission.zip, here)")
    submit.add_argument("--replace", action="store_true", help="write the zip anew where there is one of before")
    submit.add_argument("--json", action="store_true", help="print what was packed and the warnings as JSON")

    data = _command(
        commands, "data", _data, "fetch a data set and check it, or tell where published weights are",
        "course data multi30k",
    )  # fmt: skip
    data.add_argument("name", choices=[*DATA])
    data.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="where it lies (default: here)")
    data.add_argument("--url", metavar="ADDRESS", help="another address that has the same files")
    data.add_argument("--json", action="store_true", help="print what is found as JSON")

    train = _command(
        commands, "train", _train, "train your model on a real corpus, for minutes or hours; a stopped run goes on",
        "course train hw4 --corpus multi30k --minutes 60",
    )  # fmt: skip
    _add_notebook(train)
    train.add_argument("--corpus", choices=["multi30k"], default="multi30k", help="default: %(default)s")
    train.add_argument("--folder", type=Path, metavar="DIR", help="where it lies (default: what `course data` fetched)")
    train.add_argument("--out", type=Path, metavar="DIR", help="files of the run (default: hw4_captions, beside it)")
    train.add_argument("--recipe", choices=["cpu", "gpu", "smoke"], help="sizes (default: by the device)")
    length = train.add_mutually_exclusive_group(required=True)
    length.add_argument("--steps", type=int, metavar="N", help="so many steps")
    length.add_argument("--minutes", type=float, metavar="M", help="so long, the looks included")
    train.add_argument("--device", help="cpu, cuda or mps (default: the best one here)")
    train.add_argument("--threads", type=int, default=0, metavar="N", help="default: 1, or COURSE_THREADS")
    train.add_argument("--seed", type=int, default=0, help="another run (default: 0)")
    train.add_argument("--beam", type=int, default=0, metavar="K", help="score a beam of this width too")
    train.add_argument("--compile", action="store_true", help="by torch.compile: slower to begin, faster on a GPU")
    train.add_argument("--anew", action="store_true", help="begin again where a run is there already")

    gpu = _command(
        commands, "gpu-check", _gpu_check, "hold your GPU against your processor, with your answers",
        "course gpu-check",
    )  # fmt: skip
    _take_homework(gpu, "default: every homework here and one folder below", nargs="*")
    gpu.add_argument("--device", help="cuda, cuda:1, mps, or cpu to try the command (default: the GPU here)")
    gpu.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    gpu.add_argument("--out", type=Path, default=Path("gpu-report.json"), metavar="FILE", help="default: %(default)s")
    gpu.add_argument("--json", action="store_true", help="print the report as JSON")

    completion = _command(
        commands, "completion", _completion, "print a script that lets your shell complete these commands",
        'eval "$(course completion bash)"',
    )  # fmt: skip
    completion.add_argument("shell", choices=SHELLS)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    text: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text, epilog=f"Example: {example}")
    parser.set_defaults(run=run)
    return parser


def _add_notebook(parser: argparse.ArgumentParser) -> None:
    _take_homework(parser, "such as hw1 or hw1_attention, or the path of your notebook or its folder")


def _take_homework(parser: argparse.ArgumentParser, help: str, nargs: str | None = None) -> None:
    offer(parser.add_argument("homework", nargs=nargs, help=help), _homeworks)


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        metavar="SECONDS",
        help="of the processor, for one cell or question (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


# The imports stand inside the commands, so that `course --help` answers at once.


def _doctor(options: argparse.Namespace) -> int:
    from course_utils.terminal.doctor import examine

    findings = examine()
    broken = [finding for finding in findings if not finding.ok]
    if options.json:
        _print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        print(*findings, sep="\n")
        print("All is well." if not broken else f"{len(broken)} to fix, marked FIX above.")
    return FAILED if broken else OK


def _start(options: argparse.Namespace) -> int:
    from course_utils.terminal.start import start

    started = start(options.homework, options.to, options.again)
    if options.json:
        _print_json(dataclasses.asdict(started) | {"notebook": str(started.notebook)})
    else:
        print(started)
    return BAD_INPUT if started.edited else OK


def _check(options: argparse.Namespace) -> int:
    from course_utils.terminal.check import run_checks
    from course_utils.terminal.find_work import find_work
    from course_utils.terminal.results_table import details, rows, table, verdict

    work = find_work(options.homework, Path())
    questions = [q for q in work.original.questions if options.question in (None, q.id)]
    if not questions:
        known = ", ".join(question.id for question in work.original.questions)
        raise Refusal(f"{work.homework} has no question {options.question!r}. It has {known}.")
    checked = run_checks(work, [question.id for question in questions if not question.in_words], options.limit, _tell)
    found = rows(work, checked, questions)
    failing = [cell for cell in work.notebook.cells if cell.position in checked.faults]
    faults = [f"{cell.place}: {checked.faults[cell.position]}" for cell in failing]
    if options.json:
        record = {"homework": work.homework, "notebook": str(work.path), "cells_that_fail": faults}
        _print_json(record | {"questions": [row.as_json() for row in found]})
    else:
        width = shutil.get_terminal_size().columns
        parts = [f"{work.homework}: {work.path}", table(found, width)]
        parts += ["\n".join(["Cells that fail:", *(f"  {fault}" for fault in faults)])] if faults else []
        print(*filter(None, [*parts, details(found), verdict(found, width)]), sep="\n\n")
    return OK if all(row.done or row.question.in_words for row in found) else FAILED


def _progress(options: argparse.Namespace) -> int:
    from course_utils.explain.check_report import DECIDED
    from course_utils.terminal.find_work import find_all, find_work
    from course_utils.terminal.progress_command import duration, standing

    here = Path()
    works = [find_work(options.homework, here)] if options.homework else find_all(here)
    if not works:
        raise Refusal(f"There is no homework in {here.resolve()} or in a folder in it. `course start hw1` unpacks one.")
    standings, unusable = [], []
    for work in works:
        try:
            standings.append(standing(work, options.limit, _tell))
        except Refusal as error:  # the others are told all the same
            unusable.append(str(error))
    if options.json:
        _print_json([one.as_json() for one in standings])
    else:
        print(*standings, sep="\n\n")
        if len(standings) > 1:
            print(f"\nleft in all: {duration(sum(one.minutes_left for one in standings))}")
        if standings:
            print(f"\nThese are public checks; {DECIDED}.")
    if unusable:
        raise Refusal("\n".join(unusable))
    return OK


def _submit(options: argparse.Namespace) -> int:
    from course_utils.terminal.find_work import find_work
    from course_utils.terminal.submit import hand_in

    handed = hand_in(find_work(options.homework, Path()), options.out, options.replace)
    if options.json:
        _print_json(dataclasses.asdict(handed) | {"file": str(handed.file)})
    elif handed.warnings or not handed.kept:
        print(handed)
    if handed.kept:
        print(handed.kept, file=sys.stderr)
    return BAD_INPUT if handed.kept else OK


def _data(options: argparse.Namespace) -> int:
    if options.url and options.name not in FETCHED:
        raise Refusal(f"{options.name} is fetched by hand: without --url this command tells from where.")
    room, module, function = DATA[options.name]
    found = _optional(f"course_utils.{room}.{module}", f"homework {room[2:]}: unpack that one, and ask there")
    try:
        whole, told = getattr(found, function)(options.folder, *([options.url] if options.url else []))
    except ValueError as error:  # no address
        raise Refusal(str(error)) from None
    if options.json:
        _print_json({"ready": whole, "told": told})
    else:
        print(*told, sep="\n")
    return OK if whole else FAILED


def _train(options: argparse.Namespace) -> int:
    from course_utils.terminal.find_work import find_work
    from course_utils.terminal.train import train

    return train(find_work(options.homework, Path()), options)


def _gpu_check(options: argparse.Namespace) -> int:
    from course_utils.terminal.find_work import find_all, find_work

    gpu = _optional("course_utils.terminal.gpu_check", "models for a GPU")
    here = Path()
    works = [find_work(wanted, here) for wanted in options.homework] or find_all(here)
    report = gpu.gpu_check(works, options.device, compiled=not options.no_compile)
    options.out.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    if options.json:
        _print_json(report.as_json())
    else:
        print(report)
        print(f"{report.verdict} The report to send in: {options.out}")
    return OK if report.is_well else FAILED


def _completion(options: argparse.Namespace) -> int:
    print(completion_script(_parser(), options.shell), end="")
    return OK


def _optional(module: str, what: str) -> ModuleType:
    """A module that not every copy of the course has, by name, so that it is not packed where nothing else needs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise Refusal(f"This copy of the course has no {what}.") from None


def _homeworks() -> list[str]:
    """What can be typed for a homework here, for shells that complete it."""
    from course_utils.terminal.originals import originals

    return sorted(originals(Path()))


def _tell(text: str) -> None:
    """Say how far a command is, beside what it prints in the end."""
    print(text, file=sys.stderr, flush=True)


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


if __name__ == "__main__":
    raise SystemExit(main())
