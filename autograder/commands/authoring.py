"""Commands for authors and TAs: build, release, verify, solutions run, new."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.commands.common import FAILED, OK, Commands, Done, Tell, command, group, named, take_homework
from autograder.errors import BadInput, BadSource, Problem
from autograder.places import ASSIGNMENTS, BUILD, COURSE, SOLUTIONS, THE_COURSE, shown

if TYPE_CHECKING:
    from autograder.homework import Homework


def add(commands: Commands) -> None:
    """Add these commands to the parser."""
    build = command(commands, "build", _build, "make assignments/ from solutions/", "autograder build hwN_topic")
    take_homework(build, several=True)
    build.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that are stale")
    build.add_argument("--anew", action="store_true", help="compute every fingerprint again")
    build.add_argument("--draft", action="store_true", help="build what is there into build/<homework>/draft/")

    release = command(commands, "release", _release, "write the zip that students get", "autograder release hwN_topic")
    take_homework(release)
    release.add_argument("--out", type=Path, default=BUILD / "release", help="folder (default: build/release)")

    verify = command(
        commands, "verify", _verify, "prove the suites with their mistakes and variants",
        "autograder verify hwN_topic --question qN_2",
    )  # fmt: skip
    take_homework(verify, several=True)
    verify.add_argument("--jobs", type=int, default=None, help="processes (default: one per core)")
    verify.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    verify.add_argument("--question", help="prove this one alone")
    verify.add_argument("--draft", action="store_true", help="prove what is there and list what is missing")
    verify.add_argument("--public-gaps", action="store_true", help="list the mistakes that pass all public checks")
    verify.add_argument("--anew", action="store_true", help="prove also what is unchanged since it was proved")

    requirements = command(
        commands, "requirements", _requirements, "what the texts ask for, and which checks keep it",
        "autograder requirements hwN_topic --strict",
    )  # fmt: skip
    take_homework(requirements, several=True)
    requirements.add_argument("--strict", action="store_true", help="exit 1 where anything is not kept, or not marked")

    example = "autograder solutions run hwN_topic --fast"
    solutions = group(commands, "solutions", "run the solution notebooks", example)
    run = command(
        solutions.add_subparsers(required=True, metavar="ACTION"), "run", _solutions_run,
        "run the solution notebooks in a real kernel and write them with their outputs, as .ipynb and as HTML", example,
    )  # fmt: skip
    take_homework(run, several=True)
    run.add_argument("--fast", action="store_true", help="short training runs, to see that everything works")
    run.add_argument("--out", type=Path, help="folder (default: build/<homework>/solution)")
    run.add_argument("--cell-seconds", type=float, default=3600, help="most seconds for one cell (default: 3600)")
    _add_new(commands)


def _add_new(commands: Commands) -> None:
    example = "autograder new homework hw7_rope"
    kinds = group(commands, "new", "make something to fill in", example).add_subparsers(required=True, metavar="KIND")
    homework = command(kinds, "homework", _new_homework, "write the source of a homework, without questions", example)
    homework.add_argument("name", help="such as hw7_rope")
    question = command(
        kinds, "question", _new_question, "add a question to a homework: its cells, suite, mistakes and variants",
        "autograder new question hw7_rope q7_1 --name rotate",
    )  # fmt: skip
    take_homework(question)
    question.add_argument("question", help="its id, such as q7_1")
    question.add_argument("--name", help="what the answer defines (default: answer_7_1)")
    question.add_argument("--points", type=float, default=10, help="default: 10")
    question.add_argument("--minutes", type=int, default=15, help="default: 15")
    question.add_argument("--difficulty", type=int, default=2, help="1 to 5 (default: 2)")
    course = command(
        kinds, "course", _new_course, "make a small course that runs, to be filled with your own homeworks",
        "autograder new course my_course",
    )  # fmt: skip
    course.add_argument("folder", type=Path, help="the new course's folder")


def _build(options: argparse.Namespace, tell: Tell) -> Done:
    import torch

    from autograder.builder.generated import as_built, staff_files, student_files
    from autograder.builder.overview import readme_files
    from autograder.builder.page_rules import page_problems, sentence_problems
    from autograder.builder.sources import missing_items, source_files, source_problems, untold_reasons
    from autograder.homework import read_homework
    from autograder.write import stale, write

    torch.set_num_threads(1)  # tensors are small: a second thread would only wait, loudly
    if options.draft:
        return _build_draft(options, tell)
    names = named(options.homework)
    homeworks = [read_homework(name) for name in names]
    pages = [problem for homework in homeworks for problem in page_problems(homework)]
    pages += [problem for problem in source_problems(COURSE, SOLUTIONS) if problem.unfinished in names]
    if pages and THE_COURSE.page_rules == "refuse":
        raise BadSource(pages)
    unmarked = {homework.name: sentence_problems(homework) for homework in homeworks}
    if any(unmarked.values()) and THE_COURSE.requirements == "refuse":
        raise BadSource(problem for problems in unmarked.values() for problem in problems)
    student = {homework.name: student_files(homework, options.anew) for homework in homeworks}
    written = readme_files(COURSE) | source_files(COURSE, SOLUTIONS)
    warnings = [str(told) for told in (*(told for homework in homeworks for told in homework.warnings), *pages)]
    warnings += [str(problem) for problem in untold_reasons(SOLUTIONS) if problem.unfinished in names]
    warnings += [_unmarked(name, problems) for name, problems in unmarked.items() if problems]
    for warning in warnings:
        tell(f"Warning: {warning}")
    if options.check:
        old = [path for name, files in student.items() for path in stale(files, [ASSIGNMENTS / name])]
        old += stale(written, [])
        for path in old:
            tell(f"{shown(path)} is stale. Run `autograder build` and commit the result.")
        if not old:
            tell(f"assignments/ is up to date ({', '.join(student)}).")
        facts = {"homeworks": list(student), "stale": [shown(path) for path in old], "warnings": warnings}
        return Done(FAILED if old else OK, facts)
    for path in write(written, []):
        tell(f"{shown(path)}: what the build writes there has changed.")
    missing = missing_items(COURSE, SOLUTIONS)
    if missing:
        tell(f"docs/sources.md: {len(missing)} items of the sources are met nowhere: {', '.join(missing)}.")
    changed = {}
    for homework in homeworks:
        files, folder = student[homework.name], BUILD / homework.name
        changed[homework.name] = [shown(path) for path in write(files, [ASSIGNMENTS / homework.name])]
        if not as_built(homework):
            write(staff_files(homework), [folder])
        tell(f"{homework.name}: {len(files)} files, {len(changed[homework.name])} changed; for staff: {shown(folder)}/")
    told = {"homeworks": list(student), "changed": changed, "warnings": warnings, "missing_sources": missing}
    return Done(OK, told)


def _build_draft(options: argparse.Namespace, tell: Tell) -> Done:
    """Build what is there of each homework, to look at; `assignments/` stays as it is, so no draft is handed out."""
    from autograder.builder.generated import student_files
    from autograder.homework import read_homework
    from autograder.write import write

    built, missing = {}, []
    for name in named(options.homework):
        homework, folder = read_homework(name, draft=True), BUILD / name / "draft"
        files = student_files(homework, options.anew)
        write({folder / path.relative_to(ASSIGNMENTS / name): content for path, content in files.items()}, [folder])
        missing += _missing(homework)
        built[name] = shown(folder)
        tell(f"{name}: {len(files)} files of a draft in {shown(folder)}/")
    _tell_missing(missing, tell)
    return Done(OK, {"drafts": built, "missing": missing})


def _missing(homework: Homework, question: str | None = None) -> list[str]:
    """What a draft still lacks, a line each, in the order of the files; its page as a whole is not one question's."""
    from autograder.builder.page_rules import kept_problems, page_problems, sentence_problems

    page = [*(kept_problems(homework) if question else page_problems(homework))]
    page += sentence_problems(homework) if THE_COURSE.requirements == "refuse" else []
    page = [problem for problem in page if question in (None, problem.unfinished)]
    return [str(problem) for problem in sorted({*homework.unfinished, *homework.warnings, *page})]


def _unmarked(name: str, problems: list[Problem]) -> str:
    """One line on sentences that ask for something and bear no mark."""
    sentences = "1 sentence asks" if len(problems) == 1 else f"{len(problems)} sentences ask"
    return f"{name}: {sentences} for something without a mark. `autograder requirements {name}` lists them."


def _requirements(options: argparse.Namespace, tell: Tell) -> Done:
    """What the texts ask for, which checks keep it, and what nothing keeps."""
    from autograder.builder.page_rules import kept_problems, sentence_problems
    from autograder.homework import read_homework
    from autograder.requirements import kept_in, table

    facts: dict[str, Any] = {}
    gaps: list[str] = []
    for name in named(options.homework):
        homework = read_homework(name, draft=True)
        rows = [
            (question, *row)
            for question, asked in homework.asked.items()
            for row in table(
                asked.requirements, kept_in(homework.public_file(question)), kept_in(homework.hidden_file(question))
            )
        ]
        tell(name)
        head = ("question", "requirement", "kept by public checks", "hidden")
        widths = [max(len(row[i]) for row in [head, *rows]) + 2 for i in range(3)]
        for row in [head, *rows]:
            tell("  " + "".join(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)) + row[3])
        found = [str(problem) for problem in sorted([*kept_problems(homework), *sentence_problems(homework)])]
        for gap in found:
            tell(f"GAP {gap}")
        gaps += found
        facts[name] = {"requirements": [dict(zip(head, row, strict=True)) for row in rows], "gaps": found}
    tell("Every requirement is kept or hidden on purpose." if not gaps else f"{len(gaps)} gaps.")
    return Done(FAILED if gaps and options.strict else OK, {"homeworks": facts})


def _tell_missing(missing: list[str], tell: Tell) -> None:
    for line in missing:
        tell(f"MISSING {line}")


def _release(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.builder.release import release

    path = shown(release(options.homework, options.out))
    tell(path)
    return Done(OK, {"path": path})


def _verify(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.verify import verify

    names = _homeworks_of(options.question) if options.question and not options.homework else named(options.homework)
    tables = verify(names, options.jobs, options.seed, options.question, options.anew, options.draft, tell)
    for table in tables:
        tell("\n".join(table.lines()))
    gaps = [gap for table in tables for gap in table.gaps()]
    for gap in gaps if options.public_gaps or options.question else ():
        tell(gap)
    warnings = [str(warning) for table in tables for warning in table.homework.warnings]
    missing = [line for t in tables for line in _missing(t.homework, options.question)] if options.draft else []
    _tell_missing(missing, tell)
    for warning in warnings if not options.draft else ():
        tell(f"Warning: {warning}")
    misses = [miss for table in tables for miss in table.misses]
    for miss in misses:
        tell(f"MISS {miss}")
    if misses:
        tell(f"{len(misses)} misses.")
    elif missing:
        tell(f"What is there holds. {len(missing)} things are missing.")
    else:
        tell("Every mistake loses points and is named, every right variant keeps them all.")
    rows = {t.homework.name: [asdict(row) | {"public": row.public} for row in t.rows()] for t in tables}
    facts = {"homeworks": rows, "misses": misses, "warnings": warnings, "public_gaps": gaps}
    return Done(FAILED if misses else OK, facts | ({"missing": missing} if options.draft else {}))


def _homeworks_of(question: str) -> list[str]:
    """The homework whose number a question bears."""
    names = [name for name in named([]) if name.startswith(f"hw{question.removeprefix('q').partition('_')[0]}_")]
    if not names:
        raise BadInput(f"No homework has a question {question}. There are {', '.join(named([]))}.")
    return names


def _new_homework(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.scaffold import new_homework

    files = [shown(path) for path in new_homework(options.name)]
    first = f"q{options.name.removeprefix('hw').partition('_')[0]}_1"
    tell(f"{files[0]}: a page to fill in. Next: autograder new question {options.name} {first}")
    return Done(OK, {"files": files})


def _new_question(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.scaffold import new_question

    made = new_question(
        options.homework, options.question, options.name, options.points, options.minutes, options.difficulty
    )
    files = [shown(path) for path in made]
    tell("\n".join(files))
    tell(f"Write over what is marked TODO. What is missing: autograder verify {options.homework} --draft")
    return Done(OK, {"files": files})


def _new_course(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.new_course import new_course

    files = new_course(options.folder)
    tell(f"{options.folder}: a course with one homework, {len(files)} files. Next, in that folder:")
    homework = next(path.stem for path in files if path.parent.name == "solutions")
    for step in ("build", "verify", f"release {homework}"):
        tell(f"  autograder {step}")
    return Done(OK, {"course": str(options.folder), "files": [str(path) for path in files]})


def _solutions_run(options: argparse.Namespace, tell: Tell) -> Done:
    from autograder.builder.execute import code_cells, execute_solution
    from autograder.homework import read_homework
    from autograder.progress import Progress

    homeworks = [read_homework(name) for name in named(options.homework)]
    executed = []
    for homework in homeworks:
        out = options.out or BUILD / homework.name / "solution"
        with Progress(code_cells(homework), "cell", "cells run", homework.name) as progress:
            done = execute_solution(homework, out, options.fast, options.cell_seconds, progress.step)
        executed.append(done)
        for failure in done.failures:
            tell(f"{homework.name}, {failure}")
        state = f"{len(done.failures)} failed" if done.failures else f"all {done.checks} checks green"
        tell(f"{homework.name}: {done.cells} cells in {done.seconds:.0f} s, {state}. Open {shown(done.page)}")
    facts = [
        asdict(done) | {"notebook": shown(done.notebook), "page": shown(done.page)} for done in executed
    ]  # fmt: skip
    failed = any(done.failures for done in executed)
    return Done(FAILED if failed else OK, {"fast": options.fast, "solutions": facts})
