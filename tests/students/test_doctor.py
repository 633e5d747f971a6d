"""`course doctor`: ok, or what to do."""

import json
import sys

import pytest

from course_utils.terminal import doctor
from course_utils.terminal.main import main


@pytest.fixture
def pins(monkeypatch, tmp_path):
    """A function that packs a list of versions."""

    def write(text):
        (tmp_path / "pins.txt").write_text(text)
        monkeypatch.setattr(doctor.importlib.resources, "files", lambda package: tmp_path)

    return write


def test_this_environment_is_healthy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in ("Python", "packages", "torch device", "notebook kernel", "writing here", "free disk"):
        assert f"ok   {name}" in out
    assert out.endswith("All is well.\n")


def test_the_findings_come_as_json_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COURSE_DEVICE", "abacus")
    assert main(["doctor", "--json"]) == 1
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert findings["torch device"]["ok"] is False and "COURSE_DEVICE" in findings["torch device"]["remedy"]
    assert findings["Python"]["ok"] is True


def test_packages_that_are_missing_or_of_another_version_are_named(pins):
    pins("# pins of the release\ntorch==0.1  # old\nno-such-package==1.0 ; python_version > '3'\n")
    found = {finding.name: finding.found for finding in doctor.packages()}
    assert found["no-such-package"] == "missing, 1.0 is needed"
    assert found["torch"].endswith(", 0.1 is needed")


def test_a_local_build_of_the_pinned_version_is_fine(pins, monkeypatch):
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name: "2.13.0+cpu")
    pins("torch==2.13.0\n")
    assert [str(finding) for finding in doctor.packages()] == ["ok   packages: all 1 as pinned"]


def test_without_a_list_of_versions_it_says_so(pins, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.importlib.resources, "files", lambda package: tmp_path)
    assert "no list of versions" in doctor.packages()[0].found


def test_an_old_python_is_named(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    finding = doctor.python()[0]
    assert not finding.ok and "3.11 or newer" in finding.remedy


def test_a_missing_kernel_says_how_to_get_one(monkeypatch, tmp_path):
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    def missing(self, name):
        raise NoSuchKernel(name)

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", missing)
    finding = doctor.kernel()[0]
    assert not finding.ok and "ipykernel install" in finding.remedy


def test_a_folder_that_cannot_be_written_to_and_a_full_disk_are_named(tmp_path, monkeypatch):
    assert not doctor.writing(tmp_path / "missing")[0].ok
    monkeypatch.setattr(doctor, "FREE_DISK", 10**18)
    assert doctor.disk(tmp_path)[0].remedy == "Free at least 1 GB"


def test_a_look_that_fails_is_a_finding_and_not_a_crash(monkeypatch, tmp_path):
    def broken():
        raise ImportError("no torch here")

    monkeypatch.setattr(doctor, "device", broken)
    finding = next(f for f in doctor.examine(tmp_path) if f.name == "torch device")
    assert not finding.ok and "no torch here" in finding.found


def test_help_is_there(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0 and "doctor" in capsys.readouterr().out
