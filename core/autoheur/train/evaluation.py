"""Judging decisions against measurements: the published figures, practical ones, and rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from autoheur.heuristic.model import Policy
from autoheur.train.learner import Floats
from autoheur.train.noise import too_slow

Mask = NDArray[np.bool_]

TOP = (1, 3, 5, 10)
"""How many of the best-ranked choices are benchmarked in the ranking figures."""


@attrs.frozen(eq=False)
class Decisions:
    """What a policy makes of the scores of P problems.

    ``choice`` is the position of the best-scored available choice, also where the policy is unsure; ``confidence``
    the policy's statistic; ``decided`` whether the choice is taken.
    """

    choice: NDArray[np.intp]
    confidence: Floats
    decided: Mask


def decide_all(scores: Floats, available: Mask, policy: Policy, applies: Mask | None = None) -> Decisions:
    """Decide P problems.

    ``scores`` and ``available`` (whether a choice can be taken) are P x C. Where ``applies`` (P) is false the
    decision is unsure; pass there what guard and precondition say.
    """
    masked = np.where(available, scores, -np.inf)
    rows = np.arange(len(masked))
    choice = masked.argmax(axis=1)  # the first of the best
    best = masked[rows, choice]
    masked[rows, choice] = -np.inf
    second = masked.max(axis=1)
    if policy.statistic == "ratio":
        without_second = np.where(best > 0, np.inf, np.nan)  # as generated code has it
        confidence = np.divide(best, second, out=without_second, where=second != 0)
    elif policy.statistic == "difference":
        confidence = best - second
    else:
        confidence = best
    decided = confidence > policy.threshold
    return Decisions(choice, confidence, decided if applies is None else decided & applies)


def is_best(choice: NDArray[np.intp], times: Floats) -> Mask:
    """Whether ``choice`` (P) is the quickest, the first in order among equals, where ``times`` are P x C."""
    right: Mask = choice == np.where(np.isfinite(times), times, np.inf).argmin(axis=1)
    return right


@attrs.frozen
class Row:
    """The figures of one model on one dataset; ``None`` where a figure is not defined.

    A decision is *correct* when it names the choice with the least median (the first in order among equals), else
    *wrong*. ``max_wrong_speedup`` and ``gmean_wrong_speedup`` are slowest over fastest choice of the problems decided
    wrongly. These are the published figures, as is ``threshold``, in units of the policy's statistic.

    The others are practical. ``wrong_beyond_tolerance`` counts decisions for a choice slower than the tolerance times
    the best, where noise does not explain it; ``coverage`` is the share of problems decided; ``regret_gmean`` and
    ``regret_max`` are the time of the chosen over that of the best, over the problems decided (the others are
    autotuned, at regret 1).

    With more than two choices there are rankings too: ``recall_at[k]`` is the share of problems whose best choice is
    among the k best-scored, ``regret_at[k]`` the regret of the best measured among them, over all problems.
    """

    dataset: str
    learner: str
    params: Mapping[str, Any]
    chosen: bool
    correct: int
    wrong: int
    unsure: int
    total: int
    max_wrong_speedup: float | None
    gmean_wrong_speedup: float | None
    threshold: float
    wrong_beyond_tolerance: int
    coverage: float | None
    regret_gmean: float | None
    regret_max: float | None
    recall_at: Mapping[int, float] | None = None
    regret_at: Mapping[int, Mapping[str, float]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the ranking figures only where there are any."""
        data = attrs.asdict(self, recurse=False)
        data["params"] = dict(self.params)
        for key in ("recall_at", "regret_at"):
            figures = data.pop(key)
            if figures is not None:
                data[key] = {str(k): dict(v) if isinstance(v, Mapping) else v for k, v in figures.items()}
        return data


def judge(
    scores: Floats,
    times: Floats,
    policy: Policy,
    *,
    dataset: str,
    learner: str,
    params: Mapping[str, Any],
    tolerance: float,
    noise: Floats | None = None,
    chosen: bool = False,
    applies: Mask | None = None,
) -> Row:
    """Judge decisions on P problems; ``times`` (P x C, ms) are NaN where a choice does not count.

    Only choices that count compete, both in scores and in times. ``noise`` (P x C) holds standard errors of the
    logarithms of the times; without it every difference is taken for real.
    """
    available = np.isfinite(times)
    decisions = decide_all(scores, available, policy, applies)
    decided = decisions.decided
    right = is_best(decisions.choice, times)
    wrong = decided & ~right
    fastest, slowest = np.nanmin(times, axis=1), np.nanmax(times, axis=1)
    regret = times[np.arange(len(times)), decisions.choice] / fastest
    max_wrong, gmean_wrong = _max_and_gmean((slowest / fastest)[wrong])
    regret_max, regret_gmean = _max_and_gmean(regret[decided])
    recall_at, regret_at = _ranking(scores, times) if times.shape[1] > 2 and len(times) else (None, None)
    return Row(
        dataset=dataset,
        learner=learner,
        params=params,
        chosen=chosen,
        correct=int((decided & right).sum()),
        wrong=int(wrong.sum()),
        unsure=int((~decided).sum()),
        total=len(times),
        max_wrong_speedup=max_wrong,
        gmean_wrong_speedup=gmean_wrong,
        threshold=policy.threshold,
        wrong_beyond_tolerance=int((decided & too_slow(times, noise, decisions.choice, tolerance)).sum()),
        coverage=float(decided.mean()) if len(times) else None,
        regret_gmean=regret_gmean,
        regret_max=regret_max,
        recall_at=recall_at,
        regret_at=regret_at,
    )


def _max_and_gmean(ratios: Floats) -> tuple[float | None, float | None]:
    if not len(ratios):
        return None, None
    return float(ratios.max()), float(np.exp(np.log(ratios).mean()))


def _ranking(
    scores: Floats, times: Floats, top: Sequence[int] = TOP
) -> tuple[dict[int, float], dict[int, dict[str, float]]]:
    """Recall of the best choice among the k best-scored, and regret after benchmarking those."""
    measured = np.where(np.isfinite(times), times, np.inf)
    order = np.argsort(np.where(np.isfinite(times), -scores, np.inf), axis=1, kind="stable")
    ranked = np.take_along_axis(measured, order, axis=1)
    best = measured.min(axis=1)
    place = (order == measured.argmin(axis=1)[:, None]).argmax(axis=1)
    recall, regret = {}, {}
    for k in top:
        ratio = ranked[:, :k].min(axis=1) / best
        recall[k] = float((place < k).mean())
        regret[k] = {"gmean": float(np.exp(np.log(ratio).mean())), "max": float(ratio.max())}
    return recall, regret
