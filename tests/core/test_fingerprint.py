from __future__ import annotations

import pytest

from autoheur import fingerprint
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint

A100 = Fingerprint("cuda", "NVIDIA A100-SXM4-40GB", "8.0", sm_count=108, memory_gib=40, shared_memory=166912)
H200 = Fingerprint("cuda", "NVIDIA H200", "9.0", sm_count=132, memory_gib=140, shared_memory=232448)


@pytest.mark.parametrize(
    ("required", "matches"),
    [
        (Fingerprint(), True),
        (Fingerprint("cuda"), True),
        (Fingerprint("cpu"), False),
        (Fingerprint(name="NVIDIA A100"), True),
        (Fingerprint(name="NVIDIA A10"), False),
        (Fingerprint(capability="8.0", shared_memory=166912), True),
        (Fingerprint(capability="9.0"), False),
        (Fingerprint(vendor="AuthenticAMD"), False),
    ],
)
def test_a_requirement_is_met_where_every_known_field_agrees(required: Fingerprint, matches: bool) -> None:
    assert (required.mismatch(A100) is None) == matches


def test_h100_and_h200_are_told_apart_although_their_shared_memory_is_the_same() -> None:
    assert fingerprint.KNOWN["h100"].mismatch(H200) == "name is 'NVIDIA H200', not 'NVIDIA H100'"
    assert fingerprint.KNOWN["h200"].mismatch(H200) is None


def test_the_requirement_of_a_log_is_capability_and_shared_memory() -> None:
    required = fingerprint.from_log_metadata({"device_capa": [8, 0], "shared_memory": 166912})
    assert required.to_dict() == {"kind": "cuda", "capability": "8.0", "shared_memory": 166912}
    assert required.mismatch(A100) is None
    assert fingerprint.from_log_metadata({"device_capa": [0, 0], "shared_memory": None}).kind == "cpu"
    assert fingerprint.from_log_metadata({}) == Fingerprint()


@pytest.mark.parametrize("text", ["A100", '{"kind": "cuda", "capability": "8.0"}', "kind=cuda,sm_count=108", "current"])
def test_the_command_line_accepts(text: str) -> None:
    assert isinstance(fingerprint.parse(text), Fingerprint)


@pytest.mark.parametrize("text", ["v100", "kind:cuda", '{"kind": 3}', "{", "cores=many", "colour=red", '{"cores": []}'])
def test_anything_else_is_one_clear_error(text: str) -> None:
    with pytest.raises(InputError) as error:
        fingerprint.parse(text)
    assert "a100" in str(error.value)


def test_the_cpu_of_this_machine_has_a_fingerprint_that_it_meets_itself() -> None:
    here = fingerprint.cpu()
    assert here.kind == "cpu"
    assert here.cores is not None
    assert here.cores >= 1
    assert here.mismatch(here) is None
    assert Fingerprint("cpu", cores=here.cores + 1).mismatch(here) is not None
