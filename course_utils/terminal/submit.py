"""`course submit`: look a notebook over, and pack it as the graders take it."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_utils.terminal.find_work import Work
from course_utils.terminal.notebook_file import CHECK, MAX_BYTES, TEXT_STUB, Cell, Notebook
from course_utils.terminal.originals import SKIPPED_TAGS, Asked, Original
from course_utils.terminal.refusals import Refusal
from course_utils.terminal.safe_zip import read_zip
from course_utils.terminal.start import write_whole
from course_utils.terminal.trained_model import trained_model


@dataclass(frozen=True)
class HandedIn:
    """The zip to hand in, the sizes of the files in it, and what the student should know."""

    homework: str
    file: Path
    sizes: dict[str, int]
    warnings: list[str]
    unchanged: bool  # the very same zip was there before
    kept: str = ""  # why nothing was written, and what is in the file that is there

    def __str__(self) -> str:
        lines = [f"{len(self.warnings)} to look at:"] if self.warnings else []
        lines += [f"  - {text}" for text in self.warnings]
        if self.kept:
            return "\n".join(lines)
        files = ", ".join(f"{name} ({size / 1000:.0f} kB)" for name, size in self.sizes.items())
        lines.append(f"{self.file} {'is already there, the same' if self.unchanged else 'is written'}. In it: {files}.")
        lines.append("Hand in this one file. What the public checks say of it: course check " + self.homework)
        return "\n".join(lines)


def hand_in(work: Work, out: Path | None, replace: bool) -> HandedIn:
    """Look the notebook over and write the zip; a zip of before is replaced only where that is asked for."""
    target = out or Path(f"{work.homework}-submission.zip")
    if target.suffix.lower() != ".zip":
        raise Refusal(f"{target} does not end in .zip, and the file to hand in is a zip.")
    warnings = warnings_about(work.notebook, work.original)
    files = {f"{work.homework}.ipynb": work.path.read_bytes()}
    if model := trained_model(work):
        files |= {work.original.checkpoint: model.path.read_bytes()} if model.path else {}
        warnings += [model.remark] if model.remark else []
    content = _packed(files, work.path.stat().st_mtime)
    unchanged = target.is_file() and target.read_bytes() == content
    kept = "" if unchanged or (replace and target.is_file()) else _in_the_way(target, work)
    if not unchanged and not kept:
        write_whole(target, content)
    sizes = {name: len(data) for name, data in files.items()}
    return HandedIn(work.homework, target, sizes, warnings, unchanged, kept)


def _in_the_way(target: Path, work: Work) -> str:
    """What is there already and stays as it is, and what who hands it in hands in; nothing where there is none."""
    if not target.exists():
        return ""
    if not target.is_file():
        return f"{target} is already there, and stays as it is. Name another file with --out."
    told = f"{target} is already there, and stays as it is."
    if (packed := _notebook_in(target, work)) is not None and packed != work.path.read_bytes():
        saved, made = (_clock(path.stat().st_mtime) for path in (work.path, target))
        if work.path.stat().st_mtime > target.stat().st_mtime:
            told += f" Your notebook is newer (saved {saved}, the zip is of {made}): that zip hands in old work."
        else:
            told += (
                f" It holds another notebook than the one that is here (the zip is of {made}, yours was saved {saved})."
            )
    elif packed is None:
        told += f" It holds no {work.homework}.ipynb: it is no submission of this homework."
    return f"{told} Add --replace to write it anew, or name another file with --out. Nothing was written."


def _notebook_in(target: Path, work: Work) -> bytes | None:
    """The notebook in a zip of before; None where there is none that can be read."""
    try:
        return read_zip(target, str(target)).get(f"{work.homework}.ipynb")
    except (Refusal, OSError):
        return None


def _clock(when: float) -> str:
    return time.strftime("%d %b %H:%M", time.localtime(when))


def warnings_about(notebook: Notebook, original: Original) -> list[str]:
    """What a student should know before handing in, in the order of the questions; raises `Refusal`."""
    ids = {cell.id for cell in notebook.cells}
    defined = {name for cell in notebook.cells for name in cell.defines}
    if not any(question.id in ids or set(question.names) & defined for question in original.questions):
        raise Refusal(f"This is no notebook of {original.name}: no cell of it answers one of its questions.")
    found: list[str] = []
    for question in original.questions:
        if question.in_words:
            found += _text_warnings(question, notebook, original)
        else:
            renamed = original.renamed(question, notebook)
            found += [f"{question.id}: {one}." for one in renamed]
            found += _answer_warnings(question, notebook, {one.expected for one in renamed})
    unanswered = [question.id for question in original.questions if _is_unanswered(question, notebook)]
    found += [f"Not answered yet: {', '.join(unanswered)}."] if unanswered else []
    return [*found, *_cell_warnings(notebook, original)]


def _packed(files: dict[str, bytes], when: float) -> bytes:
    """A zip of the files; the same for the same notebook, whenever it is made."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, max(time.localtime(when)[:6], (1980, 1, 1, 0, 0, 0)))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    if buffer.tell() > MAX_BYTES:
        raise Refusal(
            f"The zip would have more than the {MAX_BYTES // 2**20} MB that the graders read. In Jupyter choose Edit > "
            "Clear Outputs of All Cells, save, and see that the trained model has the stated sizes."
        )
    return buffer.getvalue()


def _answer_warnings(question: Asked, notebook: Notebook, renamed: Collection[str] = ()) -> Iterator[str]:
    """What is odd about the cell that answers a question, besides names that stand there under others."""
    cells = notebook.with_id(question.id)
    elsewhere = _elsewhere(question, notebook)
    if len(cells) > 1:
        places = " and ".join(str(cell.position) for cell in cells)
        yield f"{question.id}: cells {places} carry its id, and of equal names the last counts: delete the others."
    if not cells:
        yield f"{question.id}: its answer cell is missing. {_where(question.names, elsewhere)}"
    broken = [cell for cell in cells if isinstance(cell.parsed, str)]
    if broken:
        where = f"cell {broken[0].position}"
        yield f"{question.id}: {where} is no Python, so nothing of it counts: {broken[0].parsed}"
    elif cells:
        here = {name for cell in cells for name in cell.defines}
        if missing := [name for name in question.names if name not in here and name not in renamed]:
            yield f"{question.id}: its cell does not define {_code(missing)}. {_where(missing, elsewhere)}"
        stubs = _stubs(question, notebook)
        if stubs and not _is_unanswered(question, notebook):
            yield f"{question.id}: {_code(stubs)} is not answered yet."


def _elsewhere(question: Asked, notebook: Notebook) -> dict[str, Cell]:
    """The names that another cell answers, and the first such cell: graders find them there."""
    others = [cell for cell in reversed(notebook.cells) if cell.id != question.id]
    return {name: cell for cell in others for name in cell.defines if name not in cell.stubs}


def _stubs(question: Asked, notebook: Notebook) -> list[str]:
    """The names that are as they were handed out, in the question's cell and everywhere."""
    cells, elsewhere = notebook.with_id(question.id), _elsewhere(question, notebook)
    left = [name for name in question.names if name not in elsewhere]
    return [name for name in left if cells and all(name in cell.stubs for cell in cells)]


def _is_unanswered(question: Asked, notebook: Notebook) -> bool:
    """Whether the cell is there and nothing is answered."""
    cells = notebook.with_id(question.id)
    if question.in_words:
        return bool(cells) and all(cell.source.strip() in ("", TEXT_STUB) for cell in cells)
    return bool(cells) and len(_stubs(question, notebook)) == len(question.names)


def _where(names: tuple[str, ...] | list[str], elsewhere: dict[str, Cell]) -> str:
    places = [
        f"`{name}` stands in cell {elsewhere[name].position}, where it counts" for name in names if name in elsewhere
    ]
    lost = [name for name in names if name not in elsewhere]
    if lost:
        places.append(f"the graders look for {_code(lost)} and find nothing")
    text = "; ".join(places)
    return f"{text[:1].upper()}{text[1:]}."


def _text_warnings(question: Asked, notebook: Notebook, original: Original) -> Iterator[str]:
    own = notebook.with_id(question.id)
    if own and _is_unanswered(question, notebook) and (below := _below(own[-1], notebook, original)):
        yield f"{question.id}: its cell is empty. If {below.place} is your answer, move the text into the cell above."
    if not own:
        yield f"{question.id}: the cell for your text is missing: write it below the question's heading."


def _below(cell: Cell, notebook: Notebook, original: Original) -> Cell | None:
    """The next cell, where it holds words of the student's own."""
    given = {one.source for one in original.notebook.cells}
    after = [one for one in notebook.cells if one.position == cell.position + 1 and one.source.strip()]
    return next((one for one in after if one.kind != "code" and not one.id and one.source not in given), None)


def _cell_warnings(notebook: Notebook, original: Original) -> Iterator[str]:
    """What is odd about other cells: checks and given code that were changed, Python that is none."""
    ours = {question.id for question in original.questions}
    sources = {cell.source for cell in notebook.cells}
    for given in original.notebook.cells:
        if given.id.startswith(CHECK) and given.source not in sources:
            yield f"{given.id.removeprefix(CHECK)}: its check cell was changed or deleted. Graders use their own."
        elif _is_given(given) and given.source not in sources:
            yield f"The course's {given.place} was changed or deleted. Graders run the course's first, then yours."
    for cell in notebook.cells:
        if cell.kind == "code" and cell.id not in ours and isinstance(cell.parsed, str):
            yield f"{cell.place} is no Python: {cell.parsed}"


def _is_given(cell: Cell) -> bool:
    """Whether graders run the course's own copy of this cell: imports and helpers."""
    return cell.kind == "code" and not cell.id and not cell.tags & SKIPPED_TAGS and "grader.check" not in cell.source


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
