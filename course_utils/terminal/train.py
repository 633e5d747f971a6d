"""`course train`: a long run on a real corpus with the answers of the student's notebook."""

from __future__ import annotations

import argparse
from pathlib import Path

from course_utils.terminal.find_work import Work
from course_utils.terminal.refusals import Refusal
from course_utils.terminal.with_answers import missing_answers, run_with_answers

CAPTIONS = "course_utils.hw4.captions"  # by name: other homeworks come without it
NEEDED = ("pad_batch", "teacher_forcing", "Transformer", "smoothed_loss", "noam_rate", "train_step", "greedy_decode")


def train(work: Work, options: argparse.Namespace) -> int:
    """Look that corpus and answers are there, then train beside the notebook; the run's exit code."""
    if not work.homework.startswith("hw4"):
        raise Refusal(f"{work.homework} has no run on a real corpus: `course train hw4` does.")
    needed = [*NEEDED, *(["beam_search"] if options.beam else [])]
    if missing := missing_answers(work, needed):
        raise Refusal(f"Training needs answers that are not there yet: {', '.join(missing)}.")
    folder = _corpus(work, options)
    out = options.out.resolve() if options.out else work.folder.resolve() / "hw4_captions"
    asked = {"folder": str(folder), "out": str(out), "recipe": options.recipe or "", "compiled": options.compile}
    asked["cached"] = not missing_answers(work, ["cached_greedy_decode"])  # the same translations, sooner
    same = ("steps", "minutes", "threads", "device", "seed", "beam", "anew")
    asked |= {name: getattr(options, name) for name in same}
    return run_with_answers(work, f"{CAPTIONS}:train", asked)


def _corpus(work: Work, options: argparse.Namespace) -> Path:
    """The folder of the corpus: as given, or where `course data` puts it."""
    places = [options.folder] if options.folder else [Path(options.corpus), work.folder / options.corpus]
    for place in places:
        if place.is_dir():
            return place.resolve()
    raise Refusal(
        f"There is no folder {places[0]}. `course data {options.corpus}` fetches the corpus, or --folder tells where "
        "yours is."
    )
