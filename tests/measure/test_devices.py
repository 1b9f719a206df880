"""The device that is measured on; a GPU is played by what torch would say of one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from autoheur import fingerprint
from autoheur.errors import InputError
from autoheur.fingerprint import Fingerprint
from autoheur.measure import devices


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    def properties(index: int) -> SimpleNamespace:
        return SimpleNamespace(
            name=f"Acme G{index}",
            major=9,
            minor=0,
            multi_processor_count=132,
            total_memory=(index + 1) * 80 * 2**30,
            shared_memory_per_block_optin=232448,
        )

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    monkeypatch.setattr(fingerprint, "cuda", fingerprint.cuda.__wrapped__)


def test_the_cpu_is_described_by_its_own_fingerprint() -> None:
    assert devices.device_fingerprint("cpu") == fingerprint.cpu()


def test_each_gpu_has_its_own_fingerprint(two_gpus: None) -> None:
    first = Fingerprint("cuda", "Acme G0", "9.0", sm_count=132, memory_gib=80, shared_memory=232448)
    second = Fingerprint("cuda", "Acme G1", "9.0", sm_count=132, memory_gib=160, shared_memory=232448)
    assert devices.device_fingerprint("cuda") == devices.device_fingerprint("cuda:0") == first
    assert devices.device_fingerprint("cuda:1") == second


def test_a_gpu_that_is_not_there_is_told(two_gpus: None) -> None:
    with pytest.raises(InputError, match="'cuda:2': torch sees none"):
        devices.device_fingerprint("cuda:2")


def test_the_environment_names_versions_threads_and_a_gpus_clock(
    two_gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "clock_rate", lambda _device: 1980)
    described = devices.environment("cuda:1", 3)
    assert (described["device"], described["threads"], described["clock_mhz"]) == ("cuda:1", 3, 1980)
    assert described["torch"] == str(torch.__version__)
    assert "clock_mhz" not in devices.environment("cpu", 3)


def test_a_clock_that_cannot_be_read_is_left_out(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_device: torch.device) -> int:
        raise ModuleNotFoundError("pynvml is not installed")

    monkeypatch.setattr(torch.cuda, "clock_rate", unreadable)
    assert "clock_mhz" not in devices.environment("cuda", 1)


def test_memory_is_given_back_to_the_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[str] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: released.append("cuda"))
    for device in ("cpu", "cuda:1"):
        devices.release_memory(device)
    assert released == ["cuda"]
