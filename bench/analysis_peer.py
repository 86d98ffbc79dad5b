#!/usr/bin/env python3
"""What `assay analyze` does, with pandas, SciPy and NumPy: analysis_peer.py BUNDLE RESAMPLES plain|shared OUT.json

Written as one would who knows these libraries: nothing loops over rows in Python, each sample's 10,000 resamples are one
array operation. `plain` draws every sample's resamples on their own; `shared` draws once for each sample size and applies
the counts to all samples of that size as one BLAS product, as assay does.

Does: reading the CSV files and every evidence and parity file; Wilson intervals of crash rates; by cell n, mean, median,
sd, MAD, trimmed mean, p90/p95/p99/max, cold figures, BCa interval of the mean; by stratum and arm against the baseline,
and of the fastest arm against each other: Welch, Mann-Whitney, d, g, A, TOST, minimum detectable effect, percentile
interval of the ratio, Holm; combined ratios with stratified intervals; p50 ratios with intervals for compiled strata and
for the fastest arm by p50; tails with and without recompiled rows; Mann-Kendall and Theil-Sen for drift; mean/median
disagreement; sensitivity of rankings; cold starts. Leaves out: texts and tables of the report, rows behind each finding,
effective sizes, model-size analysis of variance, phase split.
"""
import json
import pathlib
import sys
import time

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

ARMS = ["eager", "compiled-dynamic", "compiled-static", "torch"]
STRATUM = ["phase", "model", "scenario", "new_tokens", "batch"]
ALPHA, MARGIN, POWER = 0.05, 0.03, 0.8


def read(folder):
    frames = [pd.read_csv(path) for path in sorted(folder.glob("*/metrics.csv"))]
    rows = pd.concat(frames, ignore_index=True).sort_values("order_index", kind="stable")
    cells = {path.parent.name: json.loads(path.read_text()) for path in folder.glob("cells/*/evidence.json")}
    parity = {path.parent.name: json.loads(path.read_text()) for path in folder.glob("cells/*/parity.json")}
    return rows, cells, parity


def wilson(k, n):
    z = stats.norm.ppf(0.975)
    p = k / n
    center, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [(center - half) / (1 + z * z / n), (center + half) / (1 + z * z / n)]


class Bootstrap:
    def __init__(self, resamples, shared):
        self.resamples, self.shared, self.rng, self.counts, self.drawn = resamples, shared, np.random.default_rng(42), {}, {}

    def means(self, samples):
        """Resampled means of each sample; of a list, so that `shared` can do all of one size at once."""
        out = [None] * len(samples)
        if not self.shared:
            for i, x in enumerate(samples):
                out[i] = x[self.rng.integers(0, len(x), (self.resamples, len(x)))].mean(axis=1)
            return out
        sizes = {}
        for i, x in enumerate(samples):
            sizes.setdefault(len(x), []).append(i)
        for n, members in sizes.items():
            counts = self.rng.multinomial(n, np.full(n, 1 / n), size=self.resamples).astype(float)
            product = counts @ np.array([samples[i] for i in members]).T / n
            for column, i in enumerate(members):
                out[i] = product[self.rng.permutation(self.resamples), column]
        return out

    def medians(self, x):
        if not self.shared:
            return np.median(x[self.rng.integers(0, len(x), (self.resamples, len(x)))], axis=1)
        n = len(x)
        if n not in self.drawn:
            places = np.sort(self.rng.integers(0, n, (self.resamples, n)), axis=1)
            self.drawn[n] = (places[:, (n - 1) // 2], places[:, n // 2])
        low, high = self.drawn[n]
        order = np.sort(x)
        return (0.5 * (order[low] + order[high]))[self.rng.permutation(self.resamples)]


def bca(x, replicates):
    mean = x.mean()
    below = (replicates < mean).mean() + 0.5 * (replicates == mean).mean()
    z0 = special.ndtri(below)
    influence = x - mean
    a = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    z = special.ndtri([0.025, 0.975])
    return np.quantile(replicates, special.ndtr(z0 + (z0 + z) / (1 - a * (z0 + z)))).tolist()


def percentile(order, p):
    return float(np.quantile(order, p)) if len(order) * min(p, 1 - p) >= 1 else None


def describe(x, cold):
    order = np.sort(x)
    median = np.median(order)
    cut = int(0.1 * len(x))
    return {"n": len(x), "mean": x.mean(), "median": median, "sd": x.std(ddof=1),
            "mad": np.median(np.abs(order - median)), "trimmed": order[cut:len(x) - cut].mean(), "min": order[0],
            "p90": percentile(order, 0.9), "p95": percentile(order, 0.95), "p99": percentile(order, 0.99),
            "max": order[-1], "cold_n": len(cold), "cold_median": np.median(cold) if len(cold) else None,
            "mean_with_cold": np.concatenate([x, cold]).mean()}


def detectable(df, error):
    critical = stats.t.ppf(1 - ALPHA / 2, df)
    power = lambda d: special.nctdtr(df, d, -critical) + 1 - special.nctdtr(df, d, critical) - POWER
    return optimize.brentq(power, 0.1, 8) * error


def contrast(a, b, replicates_a, replicates_b):
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    error, df = np.sqrt(va + vb), (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    welch = stats.ttest_ind(a, b, equal_var=False)
    pooled = np.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2))
    d = (a.mean() - b.mean()) / pooled
    m = len(a) + len(b) - 2
    g = d * np.exp(special.gammaln(m / 2) - special.gammaln((m - 1) / 2)) / np.sqrt(m / 2)
    u = stats.mannwhitneyu(a, b)
    low, high = 1 / (1 + MARGIN), 1 + MARGIN
    tost = max(stats.ttest_ind(a, low * b, equal_var=False, alternative="greater").pvalue,
               stats.ttest_ind(a, high * b, equal_var=False, alternative="less").pvalue)
    t = stats.t.ppf(0.975, df)
    difference = a.mean() - b.mean()
    return {"ratio": a.mean() / b.mean(), "interval": np.quantile(replicates_a / replicates_b, [0.025, 0.975]).tolist(),
            "difference": [difference, difference - t * error, difference + t * error],
            "median_ratio": np.median(a) / np.median(b), "t": welch.statistic, "p": welch.pvalue, "d": d, "g": g,
            "u": u.statistic, "u_p": u.pvalue, "A": u.statistic / (len(a) * len(b)), "tost": tost,
            "mde": detectable(df, error) / b.mean()}


def holm(p):
    p = np.asarray(p)
    order = np.argsort(p)
    adjusted = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    out = np.empty_like(adjusted)
    out[order] = adjusted
    return out


def adjust(family):
    for key in ["p", "tost"]:
        for one, adjusted in zip(family, holm([one[key] for one in family]) if family else []):
            one[key + "_holm"] = adjusted
    for one in family:
        significant = one["p_holm"] < ALPHA and not one["interval"][0] <= 1 <= one["interval"][1]
        one["verdict"] = ("equivalent" if one["tost_holm"] < ALPHA else "inconclusive" if not significant
                          else "faster" if one["ratio"] < 1 else "slower")


def kendall(x):
    s = np.sign(x[None, :] - x[:, None])[np.triu_indices(len(x), 1)].sum()
    n = len(x)
    z = np.sign(s) * max(0, abs(s) - 1) / np.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return 2 * special.ndtr(-abs(z))


def kendall_long(x):
    """O(n log n), for long series."""
    tau = stats.kendalltau(np.arange(len(x)), x)
    return tau.pvalue


def theil_sen(x, limit=512):
    n = len(x)
    if n > limit:
        return np.median((x[n // 2:] - x[:n - n // 2]) / (n // 2))
    i, j = np.triu_indices(n, 1)
    return np.median((x[j] - x[i]) / (j - i))


def sensitivity(a, b):
    """Names the cuts (the largest, the five largest, 5 % trimmed) that change which of two is faster."""
    sign = np.sign(a.mean() - b.mean())
    found = []
    sa, sb = np.sort(a), np.sort(b)
    for name, cut in [("largest", 1), ("five largest", 5)]:
        if min(len(a), len(b)) > 2 * cut and np.sign(sa[:-cut].mean() - sb[:-cut].mean()) != sign:
            found.append(name)
    if np.sign(stats.trim_mean(a, 0.05) - stats.trim_mean(b, 0.05)) != sign:
        found.append("trimmed")
    return found


def analyze(folder, resamples, shared):
    rows, evidence, parity = read(folder)
    rows["ok"] = rows.status == "ok"
    out = {"outcomes": [], "latencies": [], "contrasts": [], "combined": [], "tails": [], "decisions": [], "findings": []}
    for by in [["phase", "arm"], STRATUM + ["arm"]]:
        counts = rows.groupby(by, sort=False).ok.agg(["size", "sum"])
        for key, (attempted, ok) in zip(counts.index, counts.to_numpy()):
            out["outcomes"].append([*map(str, key), int(attempted), int(attempted - ok), wilson(attempted - ok, attempted)])
    bootstrap = Bootstrap(resamples, shared)
    groups = {}
    for key, group in rows.groupby(STRATUM + ["arm"], sort=False):
        timed = group[group.ok]
        warm = timed[~timed.cold]
        groups[key] = {"x": warm.latency_ms.to_numpy(), "cold": timed.latency_ms[timed.cold].to_numpy(),
                       "recompiled": warm.recompiles_delta.fillna(0).to_numpy() > 0, "lost": len(group) - len(timed),
                       "first": timed.latency_ms.iloc[0], "parity": parity[group.cell_id.iloc[0]]["passed"],
                       "real": evidence[group.cell_id.iloc[0]]["compiler_real"]}
    for group, replicates in zip(groups.values(), bootstrap.means([g["x"] for g in groups.values()])):
        group["replicates"] = replicates
    trends = {}
    for key, g in groups.items():
        x = g["x"]
        out["latencies"].append([*map(str, key), describe(x, g["cold"]), bca(x, g["replicates"])])
        steady = x[~g["recompiled"]]
        trends[key] = (kendall if len(steady) <= 512 else kendall_long)(steady)
        rest = np.median(np.concatenate([g["cold"], x])[1:])
        if g["first"] >= 3 * rest:
            out["findings"].append(["cold_start", *map(str, key)])
    for phase in ["prefill", "kv_decode", "e2e_kv"]:
        keys = [key for key in groups if key[0] == phase]
        for key, p in zip(keys, holm([trends[key] for key in keys])):
            if p < ALPHA:
                x = groups[key]["x"][~groups[key]["recompiled"]]
                out["findings"].append(["drift", *map(str, key), theil_sen(x) * len(x) / np.median(x)])
        family, deciding, parts = [], [], {}
        for stratum in dict.fromkeys(key[:-1] for key in keys):
            here = {arm: groups[*stratum, arm] for arm in ARMS if (*stratum, arm) in groups}
            usable = {arm: g for arm, g in here.items() if g["lost"] == 0 and g["parity"] and len(g["x"]) >= 5}
            base = usable.get("eager")
            for arm, g in here.items():
                p50, high = np.median(g["x"]), np.quantile(g["x"], 0.99) if len(g["x"]) >= 100 else g["x"].max()
                tail = {"arm": arm, "p50": p50, "high": high, "slow": int((g["x"] > 3 * p50).sum()),
                        "recompiled": int(g["recompiled"].sum())}
                if g["recompiled"].any():
                    tail["without"] = g["x"][~g["recompiled"]].max()
                if arm != "eager":
                    ratio = bootstrap.medians(g["x"]) / bootstrap.medians(here["eager"]["x"])
                    tail["p50_ratio"] = np.quantile(ratio, [0.025, 0.975]).tolist()
                out["tails"].append(tail)
            for arm, g in usable.items():
                if base is not None and arm != "eager":
                    one = contrast(g["x"], base["x"], g["replicates"], base["replicates"])
                    one.update(stratum=list(map(str, stratum)), arm=arm)
                    family.append(one)
                    parts.setdefault(arm, []).append((g, base))
            names = list(usable)
            for i, a in enumerate(names):
                for b in names[i + 1:]:
                    xa, xb = usable[a]["x"], usable[b]["x"]
                    if (xa.mean() - xb.mean()) * (np.median(xa) - np.median(xb)) < 0:
                        out["findings"].append(["mean_median", *map(str, stratum), a, b])
                    if changed := sensitivity(xa, xb):
                        out["findings"].append(["sensitive", *map(str, stratum), a, b, *changed])
            ranked = sorted(usable, key=lambda arm: usable[arm]["x"].mean())
            races = [contrast(usable[ranked[0]]["x"], usable[other]["x"], usable[ranked[0]]["replicates"],
                              usable[other]["replicates"]) for other in ranked[1:]]
            deciding += races
            by_median = min(usable, key=lambda arm: np.median(usable[arm]["x"]))
            if by_median != ranked[0]:
                ratio = bootstrap.medians(usable[by_median]["x"]) / bootstrap.medians(usable[ranked[0]]["x"])
                out["findings"].append(["p50 prefers", by_median, np.quantile(ratio, [0.025, 0.975]).tolist()])
            out["decisions"].append({"stratum": list(map(str, stratum)), "arm": ranked[0]})
        adjust(family)
        adjust(deciding)
        out["contrasts"] += family
        for arm, pairs in parts.items():
            logs = sum(np.log(g["replicates"] / base["replicates"]) for g, base in pairs) / len(pairs)
            terms = np.array([[x.var(ddof=1) / (len(x) * x.mean() ** 2), len(x) - 1] for g, base in pairs
                              for x in (g["x"], base["x"])])
            terms[:, 0] /= len(pairs) ** 2
            error = np.sqrt(terms[:, 0].sum())
            estimate = np.mean([np.log(g["x"].mean() / base["x"].mean()) for g, base in pairs])
            df = terms[:, 0].sum() ** 2 / (terms[:, 0] ** 2 / terms[:, 1]).sum()
            out["combined"].append({"arm": arm, "phase": phase, "ratio": np.exp(estimate),
                                    "interval": np.exp(np.quantile(logs, [0.025, 0.975])).tolist(),
                                    "p": 2 * stats.t.sf(abs(estimate / error), df), "mde": detectable(df, error)})
    return out


def main():
    folder, resamples, how, path = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    begin = time.perf_counter()
    out = analyze(folder, resamples, how == "shared")
    pathlib.Path(path).write_text(json.dumps(out, default=float))
    print(json.dumps({"seconds": time.perf_counter() - begin}))


if __name__ == "__main__":
    main()
