"""Who is in the class, as a grade book or a plain list tells it, and which submission is whose.

A submission is the work of the one person who bears its student's id, character by character; in e-mail addresses
alone A to Z count as a to z. A student of an export of Canvas or Moodle, `<name>_<number>`, is the person with that
number and that name.
"""

from __future__ import annotations

import csv
import io
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from autograder.errors import BadInput
from autograder.grading.collect import UNSAFE, safe_id
from autograder.grading.tables import delimiter_of

Row = dict[str, str]
POSSIBLE = "Points Possible"  # a row of Canvas' files
IDENTIFIERS = (
    "ID", "SIS User ID", "SIS Login ID", "SID", "Email", "student_id", "email", "Student", "Name",
    "Username", "ID number", "Email address", "Identifier", "Full name", "student", "id", "name", "login", "netid",
)  # fmt: skip
FULL = ("First name", "Surname")  # Moodle's, or with "Last name"
NAMES = {"Student", "Name", "Full name", "name"}
USER = re.compile(r"(?P<name>.+)_(?P<user>[0-9]+)(?:-[0-9a-f]{6})?")  # a student of an export of Canvas or Moodle
TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # no other letter becomes one of these


def read_people(path: Path) -> tuple[list[str], list[Row]]:
    """The columns of a roster and its people; raises `BadInput`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The roster {path} cannot be read ({error}).") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="", delimiter=delimiter_of(text, ",;\t"))
    spelt = {_plain(name): name for name in reversed(IDENTIFIERS)}
    columns = [name if name in IDENTIFIERS else spelt.get(_plain(name), name) for name in reader.fieldnames or []]
    if not {*IDENTIFIERS, *FULL} & set(columns):
        raise BadInput(f"The roster {path} has none of the columns {', '.join(IDENTIFIERS)}.")
    reader.fieldnames = columns
    rows = [{key: value for key, value in row.items() if key} for row in reader]
    return columns, [row for row in rows if _is_person(row)]


def possible_points(path: Path) -> Row:
    """Canvas' row of points possible, by column; empty where the roster has none."""
    text = path.read_text(encoding="utf-8-sig")
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="", delimiter=delimiter_of(text, ",;\t"))
    return next((row for row in reader if POSSIBLE in (str(value).strip() for value in row.values())), {})


def _plain(column: str) -> str:
    """A column's name however it is spelt: Student ID, student_id, E-Mail."""
    return "".join(filter(str.isalnum, column.lower()))


def full_name(person: Row) -> str:
    """A person's name in one, where Moodle tells it in two."""
    first = person.get("First name") or person.get("First Name") or ""
    last = person.get("Surname") or person.get("Last name") or person.get("Last Name") or ""
    return f"{first} {last}".strip() or person.get("Full name", "").strip()


def shown(person: Row) -> str:
    """What a person is called in a message."""
    known = (person[name] for name in ("Student", "Email", "SID", "student_id", "Name") if person.get(name))
    return next(known, "") or full_name(person) or next((value for value in person.values() if value), "?")


def fitting(people: list[Row], students: Iterable[str]) -> list[set[str]]:
    """Of each person, the students whose id is one of theirs."""
    by_id: dict[str, set[str]] = {}
    users: dict[str, list[str]] = {}
    for student in students:
        by_id.setdefault(_key(student), set()).add(student)
        if matched := USER.fullmatch(student):
            users.setdefault(matched["user"], []).append(student)
            users.setdefault(matched["name"], []).append(student)
    return [_students_of(person, by_id, users) for person in people]


def _students_of(person: Row, by_id: dict[str, set[str]], users: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    for column in IDENTIFIERS:
        identifier = person.get(column, "").strip()
        found |= by_id.get(_key(identifier), set()) | by_id.get(_key(safe_id(identifier)) if identifier else "", set())
    names = _canvas_names(person.get("Student", ""))
    found |= {user for user in users.get(person.get("ID", "").strip(), ()) if _user(user)[0] in names}
    if called := UNSAFE.sub("_", full_name(person)):
        number = "".join(filter(str.isdigit, person.get("Identifier", "")))  # as in "Participant 123"
        found |= {user for user in users.get(called, ()) if number in ("", _user(user)[1])}
    return found


def _user(student: str) -> tuple[str, str]:
    matched = USER.fullmatch(student)
    return (matched["name"], matched["user"]) if matched else (student, "")


def id_of(person: Row, people: list[Row], found: list[set[str]]) -> str:
    """What a person without a submission is called: in the form of those who have one."""
    graded = [(one, students) for one, students in zip(people, found, strict=True) if students]
    known = Counter(
        column for one, students in graded for column in IDENTIFIERS if safe_id(one.get(column, "").strip()) in students
    )
    canvas = sum(any(USER.fullmatch(student) for student in students) for _, students in graded)
    if canvas > max(known.values(), default=0) and person.get("Student") and person.get("ID"):
        return safe_id(f"{''.join(_parts(person['Student']))}_{person['ID'].strip()}")
    columns = [column for column, _ in known.most_common()] + [c for c in IDENTIFIERS if c not in NAMES]
    told = next((person[column].strip() for column in columns if person.get(column, "").strip()), "")
    return safe_id(told or shown(person))


def missing_and_unknown(path: Path, students: list[str]) -> tuple[list[str], list[str]]:
    """Who is on the roster and handed in nothing; and who handed in something and is not on the roster."""
    _, people = read_people(path)
    found = fitting(people, students)
    missing = [id_of(person, people, found) for person, own in zip(people, found, strict=True) if not own]
    known = set[str]().union(*found)
    return sorted(set(missing) - set(students)), [student for student in students if student not in known]


def _key(identifier: str) -> str:
    """What has to be the same; an empty one is nobody's."""
    return identifier.translate(TO_LOWER) if "@" in identifier else identifier


def _canvas_names(name: str) -> set[str]:
    """How Canvas may write a person's name before a file: "Lovelace, Ada" as lovelaceada, or lovelace alone."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    names = set()
    for text in (name, plain):
        last, first = _parts(text)
        names |= {last, last + first, first + last}
    return names - {""}


def _parts(name: str) -> tuple[str, str]:
    """The last and the first name of "Lovelace, Ada", in small letters and nothing between them."""
    last, _, first = ("".join(c for c in part if c.isalnum() or c in ",-") for part in name.lower().partition(","))
    return last, first


def _is_person(row: Row) -> bool:
    """Canvas has rows about the assignments too: the points possible, and which of them are posted by hand."""
    named = [row[column].strip() for column in IDENTIFIERS if column in row]
    return any(value.strip() for value in row.values()) and POSSIBLE not in named and (not named or any(named))
