"""The worker as a process: the protocol's order and refusals, errors, fallback, what it leaves behind."""

import glob
import json
import os
import resource
import tempfile

import pytest
from conftest import CHEAP
from driver import Worker, WorkerDied

SHAPE = {"phase": "kv_decode", "batch": 1, "new_tokens": 3, "capacity": 11}
PROMPT = {"ids": [[0, 0, 0, 0, 17, 4, 99, 250]], "pad": [4]}
NOOP = {"noop": True}


def measure(worker, shape, prompt, repetitions=(0, 1)):
    return worker.ask("measure", **shape, prompts=[prompt],
                      repetitions=[{"repetition": n, "prompt": 0} for n in repetitions])


@pytest.fixture(scope="module")
def noop():
    """One worker for the tests that leave it as they found it."""
    with Worker() as worker:
        assert worker.hello()["capabilities"]["profile"] is True
        assert worker.load(options=NOOP)["type"] == "loaded"
        yield worker


def test_a_whole_conversation(noop):
    assert noop.ask("prepare", **SHAPE, padded_lens=[8])["type"] == "prepared"
    done = measure(noop, SHAPE, PROMPT, (-1, 0, 1))
    assert done["samples"] == 3
    assert [one["repetition"] for one in done["all"]] == [-1, 0, 1]
    assert [one["cold"] for one in done["all"]] == [True, False, False]
    for sample in done["all"]:
        assert sample["tokens"] == 3
        # SHA-256 of three zero int32: the noop model's logits are all equal, and the lowest id wins.
        assert sample["output_hash"] == "15ec7bf0b50732b4"
        assert sample["latency_ns"] > 0 and sample["started_at_ns"] > 1_600_000_000_000_000_000
        assert "device_ns" not in sample and "ttft_ns" not in sample
    parity = noop.ask("parity", **SHAPE, prompt=PROMPT)
    assert parity["tokens"] == [[0, 0, 0]] and parity["logit_stats"][0]["argmax"] == 0
    assert noop.ask("evidence", phase="kv_decode")["evidence"]["compiler_real"] == "not_applicable"


def test_measure_needs_its_prepare(noop):
    assert noop.ask("prepare", **SHAPE, padded_lens=[8])["type"] == "prepared"
    other = {**SHAPE, "capacity": 12}
    assert measure(noop, other, PROMPT)["class"] == "protocol_error"
    assert measure(noop, SHAPE, PROMPT)["type"] == "done"
    noop.ask("parity", **SHAPE, prompt=PROMPT)
    assert measure(noop, SHAPE, PROMPT)["class"] == "protocol_error", "parity used the cache"


@pytest.mark.parametrize("kind,members,text", [
    ("hello", {"protocol_min": 1, "protocol_max": 1}, "expected one hello"),
    ("load", {"model": "m", "mode": "eager", "cache": "static"}, "expected one load"),
    ("dance", {}, 'expected a known type, found "dance"'),
    ("__class__", {}, "expected a known type"),
    ("prepare", {**SHAPE, "batch": 0, "padded_lens": [8]}, '"batch"'),
    ("prepare", {**SHAPE, "batch": True, "padded_lens": [8]}, '"batch"'),
    ("prepare", {**SHAPE, "phase": "nap", "padded_lens": [8]}, '"phase"'),
    ("prepare", {**SHAPE, "padded_lens": [9]}, "padded_lens"),
    ("prepare", {**SHAPE, "padded_lens": "8"}, "padded_lens"),
    ("measure", {**SHAPE, "prompts": [{"ids": [[1]], "pad": [1]}], "repetitions": []}, "fewer than 1 padding ids"),
    ("measure", {**SHAPE, "prompts": [{"ids": [[1], [2]], "pad": [0, 0]}], "repetitions": []}, "expected 1 rows"),
    ("measure", {**SHAPE, "prompts": [{"ids": [[1.5]], "pad": [0]}], "repetitions": []}, "every id"),
    ("measure", {**SHAPE, "prompts": [{"ids": [[1] * 9], "pad": [0]}], "repetitions": []}, "at most 8 ids"),
    ("measure", {**SHAPE, "prompts": [PROMPT], "repetitions": [{"repetition": 0, "prompt": 1}]}, '"prompt"'),
    ("measure", {**SHAPE, "prompts": [PROMPT], "repetitions": []}, "at least one repetition"),
    ("parity", {**SHAPE, "phase": "e2e_kv", "prompt": PROMPT}, "expected phase kv_decode"),
    ("parity", {**SHAPE, "capacity": len(PROMPT["ids"][0]) + SHAPE["new_tokens"] - 2, "prompt": PROMPT}, "at most"),
    ("evidence", {"phase": "all"}, '"phase"'),
    ("tokenize", {}, '"text"'),
])
def test_refusals_name_what_is_wrong(noop, kind, members, text):
    reply = noop.ask(kind, **members)
    assert reply["type"] == "error" and reply["class"] == "protocol_error", reply
    assert text in reply["message"]
    assert reply["out_of_memory"] is False


@pytest.mark.parametrize("line", [b"{", b"[]", b"nonsense", b'{"type":"evidence"}', b'{"id":-1,"type":"evidence"}',
                                  b'{"id":1.0,"type":"x"}', b'{"id":true,"type":"x"}', b'{"id":NaN}', b"\xff\xfe",
                                  b'{"id":9,"x":' + b"[" * 80 + b"]" * 80 + b"}", b"[" * 100_000, b""])
def test_a_line_without_an_id_is_answered_with_id_zero(noop, line):
    noop.send(line + b"\n")
    reply = noop.read()
    assert (reply["id"], reply["class"]) == (0, "protocol_error")
    assert noop.ask("evidence", phase="prefill")["type"] == "evidence", "the worker stays ready"


def test_profile_refuses_a_path_it_cannot_write(noop):
    for path in ("trace.json", "/nonexistent/folder/trace.json"):
        reply = noop.ask("profile", **SHAPE, prompt=PROMPT, trace_path=path)
        assert reply["class"] == "Unsupported" and "trace_path" in reply["message"]


def test_order_before_load_and_the_options_of_load():
    with Worker() as worker:
        assert "expected hello first" in worker.load(options=NOOP)["message"]
        assert worker.ask("hello", protocol_min=2, protocol_max=3)["class"] == "protocol_error"
        assert worker.hello()["type"] == "hello"
        assert "expected load first" in worker.ask("evidence", phase="prefill")["message"]
        for members, text in [({"mode": "fast"}, "mode: expected one of eager"), ({"cache": ""}, "cache"),
                              ({"dynamic": "maybe"}, "dynamic"), ({"dtype": "int8"}, "dtype"),
                              ({"options": {"recompile_limits": 3}}, "found recompile_limits"),
                              ({"options": {"recompile_limit": 0}}, "recompile_limit: expected an integer >= 1"),
                              ({"options": {"fullgraph": "yes"}}, "fullgraph: expected true or false"),
                              ({"options": {"config": {}}}, 'options.config: expected an object with a "model_type"'),
                              ({"mode": "max-autotune", "options": {"torch_backend": "eager"}}, "mode is Inductor's"),
                              ({"options": {"device": "cuda"}}, "expected a CUDA device, found none"),
                              ({"model": "/nonexistent"}, "expected a checkpoint folder")]:
            if "cuda" in text.lower() and os.path.exists("/proc/driver/nvidia/version"):
                continue
            reply = worker.load(**members)
            assert reply["class"] == "Unsupported" and text in reply["message"], reply
        assert worker.load(options=NOOP)["type"] == "loaded", "a refused load may be tried again"
        assert worker.ask("shutdown") == {"id": worker.last_id, "type": "bye"}
        assert worker.process.wait() == 0


def test_the_end_of_requests_ends_the_worker():
    with Worker() as worker:
        worker.hello()
        worker.close_requests()
        with pytest.raises(WorkerDied) as died:
            worker.read()
        assert died.value.args == (0,)


def test_a_line_that_is_too_long_ends_the_worker():
    with Worker() as worker:
        worker.hello()
        for _ in range(17 * 16):
            worker.send(b" " * (1 << 16))
        with pytest.raises(WorkerDied) as died:
            worker.read()
        assert died.value.args == (1,)


def test_without_a_compiler_it_runs_eager_and_says_so(checkpoints_of, tmp_path):
    """The forced fallback: no C++ compiler on the path. Also that nothing of a fresh cache is left behind."""
    environment = {**os.environ, "PATH": "/nonexistent", "TMPDIR": str(tmp_path)}
    environment.pop("CXX", None)
    with open(tmp_path / "log", "wb") as log, Worker(environment, log) as worker:
        worker.hello()
        worker.load(str(checkpoints_of("llama")), mode="default", cache="static", dynamic="false",
                    options={"device": "cpu"})
        shape = {**SHAPE, "phase": "e2e_kv"}
        prepared = worker.ask("prepare", **shape, padded_lens=[8], padding=True)
        assert "InvalidCxxCompiler" in prepared["evidence"]["fallback_error"]
        prompt = {"ids": [[0, 0, 0, 0, 17, 4, 99, 150]], "pad": [4]}
        for sample in measure(worker, shape, prompt)["all"]:
            assert sample["counters"]["fallbacks"] == 4
            assert sample["counters"]["fresh_cache"] == 1
        evidence = worker.ask("evidence", phase="e2e_kv")["evidence"]
        assert evidence["compiler_real"] == "fallback"
        assert evidence["fallback"] == "eager"
        assert evidence["requested"]["mode"] == "default" and evidence["actual"]["mode"] == "eager"
        assert evidence["fallback_error"].startswith("InvalidCxxCompiler: No working C++ compiler found")
        assert "Traceback" in evidence["fallback_error"]
        assert len(evidence["toolchain"]["sha256"]) == 64
        assert evidence["toolchain"]["environment"]["PATH"] == "/nonexistent"
        assert "error" in evidence["toolchain"]["cpp_compiler"]
        folders = glob.glob(str(tmp_path / "assay-torch-cache-*"))
        assert len(folders) == 1
        worker.ask("shutdown")
        assert worker.process.wait() == 0
        assert not os.path.exists(folders[0])


def test_an_abandoned_cache_is_swept_and_one_in_use_is_not(tmp_path):
    from assay_torch.cachedirs import PREFIX, CacheFolders
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with Worker(environment) as victim:
        victim.hello()
        victim.load(options=NOOP)
    assert len(glob.glob(str(tmp_path / (PREFIX + "*")))) == 1, "a killed worker can't clean up"
    saved = tempfile.tempdir, {name: os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    tempfile.tempdir = str(tmp_path)
    try:
        mine = CacheFolders(keep=False)
        other = CacheFolders(keep=False)
        assert len(glob.glob(str(tmp_path / (PREFIX + "*")))) == 2
        mine.remove()
        other.remove()
    finally:
        tempfile.tempdir = saved[0]
        for name, value in saved[1].items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
    assert not glob.glob(str(tmp_path / (PREFIX + "*")))


def test_memory_that_runs_out_is_said_to_have_run_out(noop):
    pages = int(open(f"/proc/{noop.process.pid}/statm", encoding="utf-8").read().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + (1 << 30)
    _, most = before = resource.prlimit(noop.process.pid, resource.RLIMIT_AS)
    resource.prlimit(noop.process.pid, resource.RLIMIT_AS, (limit, most))
    try:
        shape = {"phase": "prefill", "batch": 64, "new_tokens": 0, "capacity": 1 << 22}  # 2 GiB of ids
        reply = noop.ask("prepare", **shape, padded_lens=[1 << 22])
    finally:
        resource.prlimit(noop.process.pid, resource.RLIMIT_AS, before)
    assert reply["type"] == "error" and reply["out_of_memory"] is True, json.dumps(reply)[:500]
    assert noop.ask("prepare", **SHAPE, padded_lens=[8])["type"] == "prepared", "the worker stays ready"


def test_what_does_not_fit_the_model_is_refused(noop):
    wrong = {"ids": [[256] * 8], "pad": [0]}
    assert noop.ask("prepare", **SHAPE, padded_lens=[8])["type"] == "prepared"
    reply = measure(noop, SHAPE, wrong)
    assert reply["class"] == "protocol_error" and "below the vocabulary's 256, found 256" in reply["message"]


# tests/e2e/torch_test.py sees that the first cell's folders are fresh.
@pytest.mark.soak
def test_each_cell_compiles_its_kernels_anew(arm, tmp_path, monkeypatch):
    """A second unit of the same model, even of the same shape, finds nothing of the first."""
    from assay_torch import compat
    from assay_torch.cachedirs import CacheFolders
    from assay_torch.evidence import collect
    from assay_torch.requests import Prepare, Prompt, Shape
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, os.environ[name])  # put back behind the test
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compat.forget_kernels()()  # those of other tests in this process
    folders = CacheFolders(keep=False)
    engine = arm(CHEAP, mode="default", cache="static", dynamic="false", folders=folders, keep_cache=False)
    shape, prompt = Shape("prefill", 1, 0, 5), Prompt([[17, 4, 99, 150, 3]], [0])
    found = []
    for _ in range(2):
        prepared = engine.prepare(Prepare(shape, [5], False))["evidence"]["counters"]
        found.append((prepared, engine.measure(shape, 0, prompt), collect(engine, "prefill")))
    (root,) = glob.glob(str(tmp_path / "assay-torch-cache-*"))
    assert sorted(os.listdir(root)) == ["1", "lock"], "the first unit's folders are gone"
    folders.remove()
    assert not os.path.exists(root)
    written = [one["cache_folders"]["kernels_written"] for *_, one in found]
    assert written[0] == written[1] > 0, "the same kernels, made twice"
    for prepared, sample, evidence in found:
        assert prepared["fx_cache_hits"] == 0 and prepared["kernels_compiled"] == written[0]
        assert sample["counters"]["fresh_cache"] == 1 and evidence["cache_folders"]["fresh"] is True
        assert evidence["cache_folders"]["kernels_before"] == 0 == evidence["counters"]["fx_cache_hits"]
        assert evidence["kernels"]["files_written"] == written[0] and evidence["compiler_real"] == "yes"
    paths = [one["cache_folders"]["folders"]["inductor"]["path"] for *_, one in found]
    assert paths[0] != paths[1]
    assert len({one["output_hash"] for _, one, _ in found}) == 1


@pytest.mark.soak
def test_without_a_reset_a_unit_is_proven_by_the_kernels_of_an_earlier_one_and_is_not_fresh(arm, monkeypatch):
    from assay_torch.evidence import collect
    from assay_torch.requests import Prepare, Prompt, Shape
    engine = arm(CHEAP, cache="static", mode="default", dynamic="false", reset="never")
    monkeypatch.setattr(engine.folders, "fresh", True)
    shape, prompt = Shape("prefill", 1, 0, 4), Prompt([[1, 2, 3, 4]], [0])
    for fresh in (1, 0):
        engine.prepare(Prepare(shape, [4], False))
        assert engine.measure(shape, 0, prompt)["counters"]["fresh_cache"] == fresh
        evidence = collect(engine, "prefill")
        assert evidence["cache_folders"]["fresh"] is bool(fresh) and evidence["compiler_real"] == "yes"
        assert ("this process wrote" in evidence["reasons"][1]) is not bool(fresh), evidence["reasons"]
    assert evidence["counters"]["unique_graphs"] == 0 == evidence["kernels"]["in_graphs"] and evidence["unit"] == 1


def test_a_torch_that_cannot_forget_its_kernels_is_not_called_fresh(arm, monkeypatch):
    from assay_torch import compat
    from assay_torch.evidence import collect
    from assay_torch.requests import Prepare, Shape
    engine = arm(CHEAP, cache="static", mode="default", dynamic="false", torch_backend="aot_eager")
    monkeypatch.setattr(engine.folders, "fresh", True)
    monkeypatch.setattr(compat, "forget_kernels", lambda: None)
    for fresh in (True, False):
        engine.prepare(Prepare(Shape("prefill", 1, 0, 4), [4], False))
        assert collect(engine, "prefill")["cache_folders"]["fresh"] is fresh


def test_kernels_of_other_processes_are_not_counted(tmp_path, monkeypatch):
    from assay_torch.cachedirs import CacheFolders
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))

    def write(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"")
    write("inductor/a/old.so", "triton/k/old.cubin")
    folders = CacheFolders(keep=True)
    folders.mark_start()
    write("triton/k/theirs.cubin")
    folders.begin_request()
    write("inductor/a/mine.so", "inductor/a/mine.cpp", "triton/k/mine.cubin", "triton/k/mine.json")
    assert folders.compiled() == 2 == folders.compiled()
    (tmp_path / "inductor/b").mkdir()
    (tmp_path / "inductor/b/probe.cpp").write_bytes(b'extern "C" int __avx512_vnni_chk_kernel_1() {}')
    write("inductor/b/probe.so")
    assert folders.compiled() == 2, "what asks the processor for its abilities is no kernel"
    assert folders.evidence()["kernels_before"] == 2
