"""Helpers of the estimators' tests: the program that is asked, random data sets, and how near counts as the same."""

import json
import math
import os
import pathlib
import subprocess
import warnings

import mpmath
import numpy as np
import scipy.stats as st

BUILD = pathlib.Path(os.environ["ASSAY_BUILD"])
TIMES = 100 if os.environ.get("ASSAY_SOAK") else 1
warnings.simplefilter("ignore")


def ask(requests):
    reply = subprocess.run([BUILD / "assay_stats_run"], capture_output=True, text=True, check=True,
                           input="".join(json.dumps(r) + "\n" for r in requests))
    assert "NaN" not in reply.stdout and "nan" not in reply.stdout
    replies = [json.loads(line) for line in reply.stdout.splitlines()]
    assert len(replies) == len(requests)
    return list(zip(requests, replies))


def same(found, expected, where, relative=1e-9, absolute=0.0):
    """Equal to `relative` where the reference defines a finite value; absent or finite elsewhere."""
    if expected is None or not np.isfinite(expected):
        assert found is None or math.isfinite(found), where
        return
    assert found is not None, (where, "absent", expected)
    assert abs(found - expected) <= relative * abs(expected) + absolute, (where, found, expected)


def samples(seed, count):
    """Samples with ties, constants, n = 1 and 2, huge and tiny scales, offsets and slow outliers."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.choice([1, 2, 3, 4, 5, 8, 15, 30, 60, 131, 1500], p=[.06, .08, .08, .08, .1, .1, .1, .2, .1, .08, .02]))
        kind = rng.integers(6)
        if kind == 0:
            x = rng.normal(rng.normal(), 1, n)
        elif kind == 1:
            x = rng.lognormal(0, rng.uniform(.05, 1.5), n)
        elif kind == 2:
            x = rng.integers(0, rng.integers(2, 9), n).astype(float)  # ties
        elif kind == 3:
            x = np.full(n, rng.normal())  # a constant
        elif kind == 4:
            x = 10 + rng.normal(0, .5, n)
            x[rng.random(n) < .1] *= 30
        else:
            x = 1e6 + rng.integers(0, 50, n) / 4  # far from zero
        scale = float(rng.choice([1, 1, 1, 1e-3, 1e150, 1e-150, 1e30, 1e-30]))
        yield x * scale


def pairs(seed, count):
    rng = np.random.default_rng(seed + 1)
    for a, b in zip(samples(seed, count), samples(seed + 7, count)):
        if rng.random() < .7:  # of one scale, most of the time
            size = np.abs(a).max()
            b = b / max(np.abs(b).max(), 1e-300) * (size if size > 0 else 1)
        yield a, b


def is_constant(x):
    return np.all(x == x[0])


def varies_enough(a, b):
    """Means whose difference isn't lost in rounding: what either side computes is then determined to 1e-9."""
    size = max(np.abs(a).max(), np.abs(b).max())
    return abs(a.mean() - b.mean()) > 1e-5 * size and max(a.std(), b.std()) > 1e-5 * size


def log_t_two_sided(t, df):
    """ln p by mpmath, where SciPy's p underflows."""
    with mpmath.workdps(40):
        t, df = mpmath.mpf(t), mpmath.mpf(df)
        return float(mpmath.log(mpmath.betainc(df / 2, .5, 0, df / (df + t * t), regularized=True)))


def same_test(found, expected, df, where):
    same(found["t"], expected.statistic, where)
    same(found["df"], df, where)
    if expected.pvalue > 1e-290:
        # A tiny p multiplies the last digits of t, in which the two may differ: there SciPy's p of our t counts.
        p = expected.pvalue if expected.pvalue > 1e-100 else 2 * st.t.sf(abs(found["t"]), found["df"])
        same(found["p"], p, where, absolute=1e-300)
        same(found["log_p"], math.log(expected.pvalue), where, absolute=1e-9)
    else:
        same(found["log_p"], log_t_two_sided(expected.statistic, df), where)


def margin_for(a, b):
    size = max(np.abs(a).max(), np.abs(b).max(), 1e-290)
    return float(max(np.std(a / size), np.std(b / size), .01) * size)
