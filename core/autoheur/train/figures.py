"""Judging decisions against measurements: the published figures, practical ones, shortlists and rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from autoheur.heuristic.model import Statistic
from autoheur.heuristic.reference import Floats, Mask, Positions, Shortlists, shortlists
from autoheur.train.noise import good_enough

TOP = (1, 3, 5, 10)
"""How many of the best-ranked choices are benchmarked in the ranking figures."""


def best_choice(times: Floats) -> Positions:
    """The quickest choice of each problem (P), the first in order among equals, where ``times`` are P x C."""
    best: Positions = np.where(np.isfinite(times), times, np.inf).argmin(axis=1)
    return best


@attrs.frozen
class Row:
    """The figures of one model on one dataset; ``None`` where a figure is not defined.

    A decision is *correct* when it names the choice with the least median (the first in order among equals), else
    *wrong*; ``unsure`` counts the problems for which more than one choice is left. ``max_wrong_speedup`` and
    ``gmean_wrong_speedup`` are slowest over fastest choice of the problems decided wrongly. These are the published
    figures, as is ``threshold``, in units of the policy's statistic.

    The others are practical. ``wrong_beyond_tolerance`` counts decisions for a choice slower than the tolerance times
    the best, where noise does not explain it; ``coverage`` is the share of problems decided; ``regret_gmean`` and
    ``regret_max`` are the time of the chosen over that of the best, over the problems decided (the others are
    autotuned, at regret 1).

    ``shortlist_mean`` is the mean number of choices left, and ``benchmarks_saved`` the share of benchmarks that nobody
    has to run: all of a problem that is decided, else those of the choices left out. ``regret_shortlist`` is the time
    of the best choice left over that of the best of all, over all problems.

    With more than two choices there are rankings too: ``recall_at[k]`` is the share of problems whose best choice is
    among the k best-scored, ``regret_at[k]`` the regret of the best measured among them, over all problems. Every
    measured choice counts; one without a score is ranked last.
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
    shortlist_mean: float | None
    benchmarks_saved: float | None
    regret_shortlist: Mapping[str, float] | None
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
    statistic: Statistic,
    threshold: float,
    *,
    dataset: str,
    learner: str,
    params: Mapping[str, Any],
    tolerance: float,
    noise: Floats | None = None,
    chosen: bool = False,
    applies: Mask | None = None,
    trusted: Mask | None = None,
) -> Row:
    """Judge decisions on P problems.

    ``scores`` (P x C) are NaN where there is none; ``times`` (P x C, ms) where a choice is not offered. ``noise`` (P x
    C) holds standard errors of the logarithms of the times; without it every difference is taken for real. Where
    ``applies`` (P) is false everything offered is left; where ``trusted`` (P x C) is false a score is not used but in
    the ranking. Pass there what guard and precondition say.
    """
    offered = np.isfinite(times)
    used = scores if trusted is None else np.where(trusted, scores, np.nan)
    found = shortlists(used, offered, statistic, threshold, applies)
    decided = found.decided
    best = best_choice(times)
    taken = np.where(decided, found.kept.argmax(axis=1), found.first)
    rows = np.arange(len(times))
    right = taken == best
    wrong = decided & ~right
    fastest, slowest = times[rows, best], np.nanmax(times, axis=1)
    good = good_enough(times, noise, tolerance)[rows, taken]
    max_wrong, gmean_wrong = _max_and_gmean((slowest / fastest)[wrong])
    regret_max, regret_gmean = _max_and_gmean((times[rows, taken] / fastest)[decided])
    shortlist_max, shortlist_gmean = _max_and_gmean(_best_of(times, found.kept) / fastest)
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
        threshold=threshold,
        wrong_beyond_tolerance=int((decided & ~good).sum()),
        coverage=float(decided.mean()) if len(times) else None,
        regret_gmean=regret_gmean,
        regret_max=regret_max,
        shortlist_mean=float(found.length.mean()) if len(times) else None,
        benchmarks_saved=saved_share(found, offered),
        regret_shortlist=None
        if shortlist_max is None or shortlist_gmean is None
        else {"gmean": shortlist_gmean, "max": shortlist_max},
        recall_at=recall_at,
        regret_at=regret_at,
    )


def saved_share(found: Shortlists, offered: Mask) -> float | None:
    """The share of benchmarks that shortlists spare: where one choice is left, nothing is benchmarked."""
    if not offered.any():
        return None
    return 1 - float(np.where(found.decided, 0, found.length).sum() / offered.sum())


def _best_of(times: Floats, kept: Mask) -> Floats:
    least: Floats = np.where(kept & np.isfinite(times), times, np.inf).min(axis=1)
    return least


def _max_and_gmean(ratios: Floats) -> tuple[float | None, float | None]:
    if not len(ratios):
        return None, None
    return float(ratios.max()), float(np.exp(np.log(ratios).mean()))


def _ranking(
    scores: Floats, times: Floats, top: Sequence[int] = TOP
) -> tuple[dict[int, float], dict[int, dict[str, float]]]:
    """Recall of the best choice among the k best-scored, and regret after benchmarking those."""
    order = shortlists(scores, np.isfinite(times), "difference", np.inf).order
    ranked = np.take_along_axis(np.where(np.isfinite(times), times, np.inf), order, axis=1)
    best = best_choice(times)
    place = (order == best[:, None]).argmax(axis=1)
    fastest = times[np.arange(len(times)), best]
    recall, regret = {}, {}
    for k in top:
        ratio = ranked[:, :k].min(axis=1) / fastest
        recall[k] = float((place < k).mean())
        regret[k] = {"gmean": float(np.exp(np.log(ratio).mean())), "max": float(ratio.max())}
    return recall, regret
