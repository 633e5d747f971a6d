"""The limits of a box, on every backend that works here: no bomb goes off outside."""

import os

import pytest
from box_kit import LIMITS, WALLED

from autograder.judge.verdicts import StudentCrash, StudentMemory, StudentTimeout


def test_a_fork_bomb_is_bounded(enter):
    student = enter()
    try:
        assert 1 <= student["fork_bomb"]() <= LIMITS.processes
        assert student["answer"](1) == 2
    except StudentCrash as crash:  # where the kernel does not count root's processes
        assert "processes" in str(crash) and os.getuid() == 0


def test_threads_are_bounded(enter):
    assert 1 <= enter()["thread_bomb"]() <= LIMITS.processes


@pytest.mark.parametrize("bomb", ["memory_bomb", "tensor_bomb", "family_memory_bomb"])
def test_a_memory_bomb_is_a_memory_verdict(enter, bomb):
    with pytest.raises(StudentMemory):
        enter()[bomb]()


def test_memory_that_no_limit_counts_is_refused(enter):
    assert enter()["hidden_memory"]() == ["PermissionError", -1]


@pytest.mark.parametrize("loop", ["loop", "stubborn_loop"])
def test_a_loop_is_a_timeout(enter, loop):
    student = enter()
    function = student[loop]
    student.wall = 0.3
    with pytest.raises(StudentTimeout):
        function()


def test_processor_time_runs_out(enter):
    with pytest.raises(StudentTimeout, match="processor time"):
        enter(cpu=1)["loop"]()


def test_a_box_does_not_live_for_ever(enter):
    with pytest.raises(StudentTimeout, match="at work for more than"):
        enter(wall_box=1)["loop"]()


def test_output_is_capped(enter):
    student = enter(output=1000)
    assert student["shout"](10**7) == "done"
    assert len(student.printed) < 1100


def test_a_disk_bomb_is_bounded(enter, boxes):
    assert enter()["disk_bomb"]() <= LIMITS.tmpfs
    if boxes.backend in WALLED:
        assert enter()["many_disk_bombs"]() <= LIMITS.tmpfs
    else:
        with pytest.raises(StudentCrash, match="MB of files"):
            enter()["many_disk_bombs"]()


def test_many_files_are_bounded(enter, boxes):
    if boxes.backend in WALLED:
        assert enter()["inode_bomb"]() <= 4096
    else:
        with pytest.raises(StudentCrash):
            enter()["inode_bomb"]()
