"""The estimators agree with SciPy, statsmodels and mpmath to 1e-9 relative on random data sets of every ugly kind, and
are absent, never NaN, where those define nothing. ASSAY_SOAK=1 runs a hundred times as many."""

import math

import mpmath
import numpy as np
import scipy.stats as st
import statsmodels.api as sm
from scipy.integrate import quad
from scipy.optimize import brentq
from stats_asked import TIMES, ask, is_constant, margin_for, pairs, same, same_test, samples, varies_enough
from statsmodels.stats.nonparametric import rank_compare_2indep
from statsmodels.stats.power import TTestIndPower
from statsmodels.tsa.stattools import acf


def test_one_sample():
    data = [(x, [float(np.min(x)), float(np.median(x)), float(np.max(x)) * 2]) for x in samples(1, 300 * TIMES)]
    for request, found in ask([{"op": "one", "a": list(x), "at": at} for x, at in data]):
        x = np.array(request["a"])
        size = np.abs(x).max()
        same(found["mean"], x.mean(), request, absolute=1e-15 * size)
        if len(x) < 2:
            assert found["sd"] is None and found["variance"] is None
        elif is_constant(x):
            assert found["sd"] == 0
        else:
            # The reference: longer floats, because np.std loses digits far from zero.
            exact = x.astype(np.longdouble)
            expected = float(exact.var(ddof=1))
            if 1e-300 < expected < 1e300:
                same(found["sd"], float(exact.std(ddof=1)), request)
                same(found["variance"], expected, request)
        same(found["median"], np.median(x), request)
        same(found["mad"], st.median_abs_deviation(x), request, absolute=1e-15 * size)
        same(found["trimmed"], st.trim_mean(x, .1), request, absolute=1e-15 * size)
        for i, p in enumerate([.05, .25, .9, .99]):
            same(found["quantiles"][i], np.quantile(x, p), request, absolute=1e-15 * size)
            assert found["unsorted"][i] == found["quantiles"][i]
        if len(x) >= 4:
            low, high = np.quantile(x, [.25, .75])
            same(found["fences"][0], low - 1.5 * (high - low), request, absolute=1e-15 * size)
            same(found["fences"][1], high + 1.5 * (high - low), request, absolute=1e-15 * size)
        for at, share in zip(request["at"], found["ecdf"]):
            same(share, st.ecdf(x).cdf.evaluate(at), request)


def test_two_samples_by_moments():
    requests = [{"op": "two", "a": list(a), "b": list(b), "margin": margin_for(a, b)}
                for a, b in pairs(2, 500 * TIMES)]
    compared = 0
    for request, found in ask(requests):
        a, b, margin = np.array(request["a"]), np.array(request["b"]), request["margin"]
        if len(a) < 2 or len(b) < 2:
            assert "welch" not in found
            continue
        if is_constant(a) and is_constant(b):
            assert found["welch"] is None and found["student"] is None and found["d"] is None
            assert found["tost"] is None and found["tost_ratio"] is None
            continue
        if not varies_enough(a, b):
            continue
        if "welch" not in found:  # its variances are no doubles
            size = max(np.abs(a).max(), np.abs(b).max())
            assert size > 1e150 or size < 1e-140, request
            continue
        compared += 1
        # SciPy's squares of very large or small values overflow: it gets the same values times a power of two.
        unit = 2.0 ** -math.floor(math.log2(max(np.abs(a).max(), np.abs(b).max())))
        found["interval"] = [x * unit for x in found["interval"]]
        a, b, margin = a * unit, b * unit, margin * unit
        with np.errstate(all="ignore"):
            welch = st.ttest_ind(a, b, equal_var=False)
            same_test(found["welch"], welch, welch.df, request)
            student = st.ttest_ind(a, b)
            same_test(found["student"], student, len(a) + len(b) - 2, request)
            low = st.ttest_ind(a, b - margin, equal_var=False, alternative="greater").pvalue
            high = st.ttest_ind(a, b + margin, equal_var=False, alternative="less").pvalue
            same(found["tost"]["p"], max(low, high), request, relative=1e-7, absolute=1e-290)
            if found["tost_ratio"] is None and a.mean() > 0 and b.mean() > 0:  # its variances are no doubles
                assert max(a.std(), b.std()) / unit > 1e153, request
            elif a.mean() > 0 and b.mean() > 0:
                low = st.ttest_ind(a, .8 * b, equal_var=False, alternative="greater").pvalue
                high = st.ttest_ind(a, 1.25 * b, equal_var=False, alternative="less").pvalue
                same(found["tost_ratio"]["p"], max(low, high), request, relative=1e-7, absolute=1e-290)
            interval = welch.confidence_interval()
            size = abs(a.mean() - b.mean())
            same(found["interval"][0], interval.low, request, absolute=1e-9 * size)
            same(found["interval"][1], interval.high, request, absolute=1e-9 * size)
            pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2)
            d = (a.mean() - b.mean()) / math.sqrt(pooled)
            same(found["d"], d, request)
            m = len(a) + len(b) - 2
            j = math.exp(math.lgamma(m / 2) - math.lgamma((m - 1) / 2)) / math.sqrt(m / 2)
            same(found["g"], d * j, request)
            # SciPy's F, by differences of sums of squares, loses digits for large F: for two groups F is t^2.
            if found["anova"] is None:  # nor is its sum of squares
                assert max(a.std(), b.std(), abs(a.mean() - b.mean())) / unit > 1e150, request
                continue
            if found["anova"]["f"] < 1e6:
                same(found["anova"]["f"], st.f_oneway(a, b).statistic, request, relative=1e-6)
            same(found["anova"]["f"], student.statistic ** 2, request)
            p = st.f.sf(found["anova"]["f"], 1, len(a) + len(b) - 2)
            same(found["anova"]["p"], p, request, absolute=1e-290)
    assert compared > 160 * TIMES


def test_pairs():
    rng = np.random.default_rng(12)
    requests = []
    for _ in range(120 * TIMES):
        n = int(rng.choice([2, 3, 5, 8, 30, 200]))
        mood = rng.lognormal(0, rng.uniform(.01, 1), n)  # what both of a pair share
        a, b = (rng.uniform(.7, 1.4) * mood * rng.lognormal(0, .05, n) for _ in "ab")
        scale = float(rng.choice([1, 1, 1e-3, 1e100, 1e-100]))
        requests.append({"op": "paired", "a": list(a * scale), "b": list(b * scale)})
    for request, found in ask(requests):
        a, b = np.array(request["a"]), np.array(request["b"])
        unit = 2.0 ** -math.floor(math.log2(a.max()))
        expected = st.ttest_rel(a * unit, b * unit)
        # Both subtract what the pairs share, at different steps: its last digits are what they differ by.
        same(found["t"]["t"], expected.statistic, request, relative=1e-7)
        same(found["t"]["df"], len(a) - 1, request)
        same(found["t"]["p"], expected.pvalue, request, relative=1e-6, absolute=1e-100)
        interval = expected.confidence_interval()
        size = abs(interval.high - interval.low)
        same(found["interval"][0] * unit, interval.low, request, relative=1e-7, absolute=1e-7 * size)
        same(found["interval"][1] * unit, interval.high, request, relative=1e-7, absolute=1e-7 * size)
        low = st.ttest_rel(a * unit, .8 * b * unit, alternative="greater").pvalue
        high = st.ttest_rel(a * unit, 1.25 * b * unit, alternative="less").pvalue
        same(found["tost_ratio"]["p"], max(low, high), request, relative=1e-6, absolute=1e-100)


def test_two_samples_by_ranks():
    compared = {"exact": 0, "normal": 0, "interval": 0}
    requests = [{"op": "two", "a": list(a), "b": list(b), "margin": 1.0} for a, b in pairs(3, 160 * TIMES)]
    for request, found in ask(requests):
        a, b = np.array(request["a"]), np.array(request["b"])
        ours = found["mann_whitney"]
        method = "exact" if ours["exact"] else "asymptotic"
        expected = st.mannwhitneyu(a, b, method=method)
        same(ours["u"], expected.statistic, request)
        same(ours["a"], expected.statistic / len(a) / len(b), request)
        if math.isfinite(expected.pvalue):
            same(ours["p"], expected.pvalue, request, absolute=1e-300)
            compared["exact" if ours["exact"] else "normal"] += 1
        if len(a) > 1 and len(b) > 1:
            reference = rank_compare_2indep(a, b)
            interval = reference.conf_int(alpha=.05)
            if reference.var > 0 and np.all(np.isfinite(interval)):
                compared["interval"] += 1
                same(found["superiority"][1][0], max(0, interval[0]), request, absolute=1e-12)
                same(found["superiority"][1][1], min(1, interval[1]), request, absolute=1e-12)
        for name, center in (("levene", "median"), ("levene_mean", "mean")):
            if found[name] is None or min(len(a), len(b)) < 3 or not varies_enough(a, b):
                continue
            unit = 2.0 ** -math.floor(math.log2(max(np.abs(a).max(), np.abs(b).max())))
            reference = st.levene(a * unit, b * unit, center=center)
            same(found[name]["f"], reference.statistic, request, relative=1e-8, absolute=1e-12)
            same(found[name]["p"], reference.pvalue, request, relative=1e-8, absolute=1e-12)
    assert min(compared.values()) > 10 * TIMES, compared


def test_intervals_of_d():
    compared = 0
    rng = np.random.default_rng(4)
    requests = []
    for _ in range(12 * TIMES):
        n = rng.integers(3, 80, 2)
        requests.append({"op": "two", "margin": 1.0, "a": list(rng.normal(rng.uniform(-2, 2), 1, n[0])),
                         "b": list(rng.normal(0, 1, n[1]))})
    for request, found in ask(requests):
        n_a, n_b = len(request["a"]), len(request["b"])
        root = math.sqrt(n_a * n_b / (n_a + n_b))
        t, df = found["d"] * root, n_a + n_b - 2
        ours = np.array(found["d_interval"]) * root
        low = brentq(lambda shift: st.nct.sf(t, df, shift) - .025, ours[0] - .1, ours[0] + .1, xtol=1e-13) / root
        high = brentq(lambda shift: st.nct.cdf(t, df, shift) - .025, ours[1] - .1, ours[1] + .1, xtol=1e-13) / root
        same(found["d_interval"][0], low, request, absolute=1e-9)
        same(found["d_interval"][1], high, request, absolute=1e-9)
        compared += 1
    assert compared == 12 * TIMES


def geyer_size(x):
    x = np.asarray(x) - np.mean(x)
    n = len(x)
    r = np.array([np.dot(x[:n - k], x[k:]) for k in range(n)]) / np.dot(x, x)
    tau, last = -1.0, math.inf
    for k in range(0, n - 1, 2):
        pair = r[k] + r[k + 1]
        if not pair > 0:
            break
        last = min(last, pair)
        tau += 2 * last
    return n / max(tau, 1)


def pettitt(x):
    n = len(x)
    k = [abs(sum(np.sign(x[i] - x[j]) for i in range(t) for j in range(t, n))) for t in range(1, n)]
    return max(k)


def test_series():
    rng = np.random.default_rng(5)
    requests = []
    for _ in range(50 * TIMES):
        n = int(rng.integers(2, 70))
        x = rng.normal(0, 1, n)
        for i in range(1, n):
            x[i] += rng.choice([0, .3, .8]) * x[i - 1]
        x += rng.choice([0, .05]) * np.arange(n) + rng.choice([0, 3]) * (np.arange(n) > n // 2)
        if rng.random() < .3:
            x = np.round(x)
        requests.append({"op": "series", "a": list(x * rng.choice([1, 1e120, 1e-120])), "lags": int(rng.integers(1, n))})
    for request, found in ask(requests):
        x, lags = np.array(request["a"]), request["lags"]
        if is_constant(x):
            assert all(v is None for v in found.values() if not isinstance(v, list)), request
            continue
        unit = x / np.abs(x).max()
        expected = acf(unit, nlags=lags, fft=False)
        for ours, theirs in zip(found["acf"], expected, strict=True):
            same(ours, theirs, request, absolute=1e-12)
        box = sm.stats.acorr_ljungbox(unit, lags=[lags])
        same(found["ljung_box"][0], box["lb_stat"].iloc[0], request, absolute=1e-14)
        same(found["ljung_box"][1], box["lb_pvalue"].iloc[0], request)
        line = st.theilslopes(x)
        size = np.abs(x).max()
        same(found["theil_sen"][0], line.slope, request, absolute=1e-15 * size)
        same(found["theil_sen"][1], line.intercept, request, absolute=1e-13 * size)
        if found["theil_sen"][2] is not None and np.isfinite(line.low_slope):
            same(found["theil_sen"][2][0], line.low_slope, request, absolute=1e-15 * size)
            same(found["theil_sen"][2][1], line.high_slope, request, absolute=1e-15 * size)
        if len(x) < 4:
            assert found["mann_kendall"] is None and found["size"] is None and found["pettitt"] is None
            continue
        s = sum(np.sign(x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x)))
        same(found["mann_kendall"][0], s, request)
        ties = np.unique(x, return_counts=True)[1]
        n = len(x)
        variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
        same(found["mann_kendall"][1], 2 * st.norm.sf(max(0, abs(s) - 1) / math.sqrt(variance)), request)
        same(found["size"], geyer_size(unit), request, relative=1e-7)
        if found["pettitt"] is not None:
            k = pettitt(x)
            same(found["pettitt"][1], k, request)
            same(found["pettitt"][2], min(1, 2 * math.exp(-6 * k * k / (n**3 + n**2))), request)


def log_bayes_factor(x, m):
    """ln of the Bayes factor of the t test against m, if the effect in standard deviations is drawn from N(0, 2^2): t
    is then sqrt(1 + 4 n) times a central t."""
    t = (x.mean() - m) / (x.std(ddof=1) / math.sqrt(len(x)))
    scale = math.sqrt(1 + 4 * len(x))
    return st.t.logpdf(t / scale, len(x) - 1) - math.log(scale) - st.t.logpdf(t, len(x) - 1)


def test_the_bayes_factor_is_that_of_drawn_effects():
    x = np.array([0.3, -0.2, 0.9, 0.4, 0.1])
    t = x.mean() / (x.std(ddof=1) / math.sqrt(5))
    with_effect = quad(lambda d: st.nct.pdf(t, 4, d * math.sqrt(5)) * st.norm.pdf(d, 0, 2), -12, 12)[0]
    assert abs(math.log(with_effect / st.t.pdf(t, 4)) - log_bayes_factor(x, 0)) < 1e-6


def test_anytime_intervals():
    rng = np.random.default_rng(11)
    requests = []
    for n in [4, 5, 6, 6, 10, 30, 200]:
        x = rng.normal(1, 1, n) * np.where(np.arange(n) % 2, 1, -1)  # neighbours differ: nothing widens
        requests.append({"op": "series", "a": list(x), "lags": 1})
    for request, found in ask(requests):
        x = np.array(request["a"])
        alike = min(max(acf(x, nlags=1, fft=False)[1] + 1 / len(x), 0), 0.9)
        ends = np.abs(np.array(found["anytime"]) - x.mean())
        half = ends.min()
        shift = st.moment(x, 3) / x.var(ddof=1) / (6 * len(x)) * (1 + 2 * half**2 * len(x) / x.var(ddof=1))
        same(ends[1] - ends[0], shift, request)
        half /= math.sqrt((1 + alike) / (1 - alike))
        for side in (-1, 1):
            assert abs(log_bayes_factor(x, x.mean() + side * half) - math.log(20)) < 1e-8, request
    for n in (1, 2, 3):
        ((_, found),) = ask([{"op": "series", "a": list(rng.normal(1, 1, n)), "lags": 1}])
        assert found["anytime"] is None


def test_power():
    rng = np.random.default_rng(10)
    requests = [{"op": "power", "n": [int(v) for v in rng.integers(2, 200, 2)], "d": float(rng.uniform(.2, 2)),
                 "alpha": float(rng.choice([.05, .01, .001]))} for _ in range(30 * TIMES)]
    for request, found in ask(requests):
        (n_a, n_b), d, alpha = request["n"], request["d"], request["alpha"]
        power = TTestIndPower().power(d, n_a, alpha, ratio=n_b / n_a)
        same(found["power"], power, request)
        if found["mde"] is not None:
            same(TTestIndPower().power(found["mde"], n_a, alpha, ratio=n_b / n_a), .8, request)
        assert TTestIndPower().power(d, found["needed"], alpha) >= .8 - 1e-9
        if found["needed"] > 2:
            assert TTestIndPower().power(d, found["needed"] - 1, alpha) < .8 + 1e-9


def log_tails(x, df1, df2):
    with mpmath.workdps(40):
        x, df1, df2 = mpmath.mpf(x), mpmath.mpf(df1), mpmath.mpf(df2)
        return {"t": mpmath.log(mpmath.betainc(df1 / 2, .5, 0, df1 / (df1 + x * x), regularized=True) / 2),
                "f": mpmath.log(mpmath.betainc(df2 / 2, df1 / 2, 0, df2 / (df2 + df1 * x), regularized=True)),
                "chi2": mpmath.log(mpmath.gammainc(df1 / 2, x / 2, mpmath.inf, regularized=True)),
                "z": mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2)}


def test_tails_below_the_smallest_double():
    rng = np.random.default_rng(11)
    requests = [{"op": "tails", "x": float(10 ** rng.uniform(0, 4)), "df1": float(np.round(10 ** rng.uniform(0, 3), 2)),
                 "df2": float(np.round(10 ** rng.uniform(.5, 3.5), 2))} for _ in range(24 * TIMES)]
    beyond = 0
    for request, found in ask(requests):
        for name, expected in log_tails(request["x"], request["df1"], request["df2"]).items():
            same(found[name]["log_p"], float(expected), (request, name), absolute=1e-9)
            beyond += found[name]["p"] == 0
    assert beyond > 10 * TIMES
