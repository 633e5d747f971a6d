"""The `course` command for students."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 when all is well, 1 when something needs fixing."""
    parser = argparse.ArgumentParser(prog="course", description="Help with the course's notebooks.")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser("doctor", help="look whether this machine is ready for the homework")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    arguments = parser.parse_args(argv)
    return _doctor(arguments.json)


def _doctor(as_json: bool) -> int:
    from course_utils.doctor import examine  # here, so that `course --help` answers at once

    findings = examine()
    broken = [finding for finding in findings if not finding.ok]
    if as_json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=2))
    else:
        print(*findings, sep="\n")
        print("All is well." if not broken else f"{len(broken)} to fix, marked FIX above.")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
