"""environment.yml, requirements.lock and pyproject.toml tell the same story."""

from __future__ import annotations

import re
import tomllib

import yaml

from autograder.builder.release import student_pins
from autograder.places import LOCK, REPOSITORY


def lock() -> list[str]:
    return [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]


def test_environment_yml_has_exactly_the_pins_of_the_lock_file() -> None:
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == lock()


def test_every_pin_is_exact_and_torch_is_the_one_with_a_small_build() -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin) for pin in lock())
    assert "torch==2.13.0" in lock()


def test_every_dependency_of_the_package_is_pinned() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [name for extra in project["optional-dependencies"].values() for name in extra]
    pinned = {pin.split("==")[0].lower().replace("_", "-") for pin in lock()}
    for requirement in wanted:
        assert re.split(r"[=\[<>]", requirement)[0].lower() in pinned


def test_what_students_install_is_a_part_of_the_lock() -> None:
    assert set(student_pins().split()) <= set(lock())
