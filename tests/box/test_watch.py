"""Watched calls: code that has handles in the place of numbers does the same, and cannot hide what it does."""

from __future__ import annotations

import copy
import io
import time

import msgpack
import pytest
import torch
from box_kit import LIMITS, NOTEBOOKS

from autograder.box import vault, wire
from autograder.box.channel import LoopbackChannel
from autograder.box.held import Teller, watching
from autograder.box.protocol import ProtocolError
from autograder.box.sandbox import BoxFactory, pick
from autograder.judge import measures  # noqa: F401  what the judge does in the place of instruments
from autograder.judge.faults import StudentRaised
from autograder.judge.proxies import Student
from autograder.judge.verdicts import StudentFault
from autograder.judge.watch import watch
from course_utils.checking.compare import Wrong
from course_utils.instruments.work import count_work, functions_called

SOURCE = (NOTEBOOKS / "watched.py").read_text()
HONEST = ["plain", "in_place", "loops", "branches"]


@pytest.fixture(scope="module", params=["loopback", "box"])
def student(request):
    if request.param == "loopback":
        channel = LoopbackChannel()
        student = Student(channel)
        student.load([{"id": "answers", "source": SOURCE}])
        yield student
        channel.close()
        return
    with BoxFactory(pick(), LIMITS) as boxes:
        box = boxes.open()
        student = Student(box.channel, wall=60)
        assert [outcome.fault for outcome in student.load([{"id": "answers", "source": SOURCE}])] == [None]
        yield student
        box.close()


DRAWS = """
import torch
def draws(x):
    p = torch.softmax(x, -1)
    return torch.stack([torch.multinomial(row, 1, generator=torch.Generator().manual_seed(1)) for row in p])
"""


@pytest.fixture
def here():
    names = {}
    exec(compile(SOURCE, "watched.py", "exec"), names)
    return names


@pytest.fixture
def inputs():
    g = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, n, 8, generator=g, dtype=torch.float64) for n in (5, 7, 7))
    return [q, k, v, torch.tensor([[False] * 7, [False] * 4 + [True] * 3])]


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", [*HONEST, "ready_made"])
def test_the_result_is_the_same_to_the_last_bit(student, here, inputs, name, device):
    with watch(student, device) as session:
        seen = session.call(student[name], *inputs)
    assert torch.equal(seen.value, here[name](*inputs)) and not seen.strays
    assert seen.read <= 4


def test_a_generator_is_taken_and_the_vaults_own_draws(student, inputs):
    student.load([{"id": "draws", "source": DRAWS, "keep": ["draws"]}])
    with watch(student) as session:
        seen = session.call(student["draws"], inputs[0])
    assert seen.value.shape == (2, 5, 1) and bool((seen.value < 8).all())


def test_numpy_works_on_handles_too(student, here, inputs):
    with watch(student) as session:
        seen = session.call(student["numpy_inside"], *inputs)
    torch.testing.assert_close(seen.value, here["numpy_inside"](*inputs))
    assert seen.read == 0


@pytest.mark.parametrize("name", ["plain", "in_place"])
def test_work_is_counted_as_it_is_counted_here(student, here, inputs, name):
    assert student.run(count_work, student[name], *inputs)["flops"] == count_work(here[name], *inputs)["flops"] > 0
    seen = student.run(count_work, student[name], *inputs)
    assert seen["largest"] == count_work(here[name], *inputs)["largest"]


@pytest.mark.parametrize("name", ["ready_made", "in_a_thread", "without_functions"])
def test_ready_made_attention_shows_whatever_calls_it(student, inputs, name):
    assert (
        "torch.nn.functional.scaled_dot_product_attention" in student.run(functions_called, student[name], *inputs)[1]
    )
    assert (
        "torch.nn.functional.scaled_dot_product_attention"
        not in student.run(functions_called, student["plain"], *inputs)[1]
    )


READERS = ["reads_all", "reads_bits", "reads_by_writing", "reads_by_shapes", "reads_by_errors"]
READERS += ["reads_two_as_one", "reads_means"]


@pytest.mark.parametrize("name", READERS)
def test_whoever_reads_everything_out_has_left_the_watch(student, inputs, name):
    with watch(student) as session, pytest.raises(Wrong, match="in a watched call it reads more than 64 numbers out"):
        session.call(student[name], *inputs)


def test_whoever_brings_everything_in_has_left_the_watch(student, inputs):
    with watch(student, brings=100) as session, pytest.raises(Wrong, match="it brings more than 100 numbers"):
        session.call(student["brings_all"], *inputs)


@pytest.mark.parametrize("name", ["owns_what_it_likes", "brings_in_a_run"])
def test_numbers_come_in_only_where_they_are_counted(student, inputs, name):
    with watch(student) as session, pytest.raises((Wrong, StudentFault)):
        session.call(student[name], *inputs)


def test_calls_of_one_session_share_what_may_be_read_out(student, inputs):
    with watch(student) as session, pytest.raises(Wrong, match="reads more than"):
        for _ in range(40):
            session.call(student["reads_one_row"], inputs[0])


def test_an_input_that_was_changed_and_forgotten_is_named_too(student, inputs):
    with watch(student) as session, pytest.raises(Wrong, match="your code changed its argument 1 in place"):
        session.call(student["changes_and_forgets"], *inputs)


def test_a_result_that_is_too_large_is_none(student, inputs):
    with watch(student) as session, pytest.raises((StudentFault, ProtocolError)):
        session.call(student["many_large"], *inputs)
    with watch(student) as session:  # and the vault is there for the next call
        assert session.call(student["plain"], *inputs).flops


def test_memory_of_an_earlier_call_is_of_no_use(student, inputs):
    for scale in (1, 2):
        with watch(student) as session:
            seen = session.call(student["from_memory"], *(x * scale for x in inputs[:3]), inputs[3])
        assert not seen.value.any()  # what it has kept are zeros of its own, and no number of ours
    assert not student["from_memory"](*inputs).any()  # and it is a tensor like any other outside


def test_work_after_the_call_is_of_no_account(student, inputs):
    with watch(student) as session:
        seen = session.call(student["goes_on_afterwards"], *inputs)
        time.sleep(0.2)
        assert not seen.value.any()
    assert student["_LATE"][-1:] == ["a tensor of an earlier call is used here: keep nothing from one call to the next"]


def test_inputs_that_were_changed_are_named(student, inputs):
    before = copy.deepcopy(inputs)
    with watch(student) as session, pytest.raises(Wrong, match="your code changed its argument 1 in place"):
        session.call(student["changes"], *inputs)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))


def test_what_is_too_large_is_never_made(student, inputs):
    with watch(student) as session, pytest.raises(Wrong, match=r"a tensor of \[1000000, 1000000\] is larger than"):
        session.call(student["too_large"], *inputs)


def test_the_vault_reads_no_files(student, inputs):
    with watch(student) as session, pytest.raises((Wrong, StudentFault)):
        session.call(student["reads_files"], *inputs)


def test_a_tensor_on_another_device_is_found_with_real_numbers(student, inputs):
    with watch(student, "meta") as session, pytest.raises(StudentRaised, match="two devices"):
        session.call(student["made_elsewhere"], *inputs)
    with watch(student, "meta") as session:
        assert session.call(student["result_elsewhere"], *inputs).strays == 1


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_modules_numbers_are_in_the_vault_and_come_back(student, device):
    layer, x = student["Layer"](4), torch.randn(2, 3, 4)
    expected = layer(x)
    with watch(student, device) as session:
        torch.testing.assert_close(session.call(layer, x).value, expected.detach())
    torch.testing.assert_close(layer(x), expected)
    assert len(layer.state_dict()) == 8


def test_a_constant_that_is_no_buffer_stays_behind(student):
    with watch(student, "meta") as session, pytest.raises(StudentRaised, match="two devices"):
        session.call(student["Loose"](4), torch.randn(2, 3, 4))


def test_what_a_call_leaves_in_the_box_goes_on(student):
    with watch(student) as session:
        cache = session.call(student["Cache"], opaque="all").value
        for t in range(1, 4):
            seen = session.call(student["step"], torch.full((2,), 1.0 * t), cache, opaque="last")
            cache = seen.value[1]
    assert seen.value[0].tolist() == [6.0, 6.0]


def test_only_what_computes_is_allowed():
    aten = torch.ops.aten
    for op in (aten.from_file.default, aten.set_.source_Storage, aten.record_stream.default):
        assert not vault.is_allowed(op)
    for op in (aten.mm.default, aten.add.Tensor, aten._softmax.default, aten.index_put_.default):
        assert vault.is_allowed(op)


NONSENSE = [b"", b"\xc1", b"\x90", b"\x95\xa3run\xa2mm\xa7default\x90\x80", b"\xdd\xff\xff\xff\xff"]


@pytest.mark.parametrize("data", NONSENSE)
def test_a_box_that_sends_nonsense_gets_an_error(data):
    reply = vault.Vault().answer_box(data)
    assert reply.startswith(b"\x93\xc2")  # [False, ...


def _asked(vault_asked):
    """A way to a vault that notes what is sent."""
    kept = vault.Vault()
    kept.answer_judge({"op": "resume", "own": False})

    def ask(data):
        vault_asked.append(len(list(msgpack.Unpacker(io.BytesIO(data), ext_hook=msgpack.ExtType))))
        return kept.answer_box(data)

    return ask


def test_what_was_met_before_is_asked_for_together():
    sent = []
    for _ in range(2):
        with watching(Teller(_asked(sent))):
            x = torch.ones(3, 4)
            for step in range(5):
                x = (x @ torch.ones(4, 4) + step).softmax(-1)
            shown = x.sum().item()
        assert shown == pytest.approx(3.0)
        first, sent[:] = list(sent), []
    assert len(first) == 1 and first[0] > 20  # the second time all of it waits until a number is read


def test_an_error_that_depends_on_numbers_is_told_at_its_own_line():
    for _ in range(2):
        with watching(Teller(_asked([]))):
            table = torch.ones(3, 4)
            assert torch.nn.functional.embedding(torch.arange(0, 2), table).shape == (2, 4)
            with pytest.raises(IndexError):
                torch.nn.functional.embedding(torch.arange(3, 5), table)


FORMS = {
    "a number of the vault's own": [1, wire.CODES[torch.float32], [2], [1]],
    "a number twice": [wire.OWN_NUMBERS, wire.CODES[torch.float32], [2], [1]],
    "another shape": [wire.OWN_NUMBERS + 1, wire.CODES[torch.float32], [3], [1]],
    "another dtype": [wire.OWN_NUMBERS + 1, wire.CODES[torch.float64], [2], [1]],
    "room that nobody needs": [wire.OWN_NUMBERS + 1, wire.CODES[torch.float32], [2], [2**40]],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_box_cannot_say_of_a_result_what_is_not_so(form):
    kept = vault.Vault()
    kept.answer_judge({"op": "resume", "own": False})
    made = ["run", "ones", "", [[2]], {}, [], [[wire.OWN_NUMBERS, wire.CODES[torch.float32], [2], [1]]]]
    assert kept.answer_box(msgpack.packb(made)).startswith(b"\x92\xc3")  # [True, ...
    assert kept.answer_box(msgpack.packb([*made[:-1], [form]])).startswith(b"\x93\xc2")  # [False, ...


def test_a_result_has_the_strides_that_the_box_was_told():
    kept = vault.Vault()
    kept.answer_judge({"op": "resume", "own": False})
    (number,) = kept.answer_judge({"op": "hold", "tensors": [torch.arange(6.0).view(2, 3)]})
    expected = [[wire.OWN_NUMBERS, wire.CODES[torch.float32], [2, 3], [1, 2]]]
    request = ["run", "mul", "Tensor", [wire.handle(number), wire.handle(number)], {}, [], expected]
    assert kept.answer_box(msgpack.packb(request)).startswith(b"\x92\xc3")
    (result,) = kept.answer_judge({"op": "fetch", "handles": [wire.OWN_NUMBERS]})
    assert result.tolist() == [[0.0, 1.0, 4.0], [9.0, 16.0, 25.0]]
