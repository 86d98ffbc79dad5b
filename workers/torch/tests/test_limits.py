"""Tests the evidence where something isn't there, or is there too often."""


def test_of_too_many_records_the_first_are_kept_and_all_are_counted():
    from assay_torch.evidence import MOST_RECORDS, _messages
    from assay_torch.cachedirs import CacheFolders
    from assay_torch.units import Unit
    from assay_torch.watch import Events
    unit = Unit(2, "prefill", None, CacheFolders(keep=True))
    events = Events(warnings=[{"text": str(n), "unit": 2} for n in range(MOST_RECORDS + 3)],
                    graph_breaks=[{"text": "one", "unit": None}], perf_hints=[{"text": "another unit's", "unit": 1}])
    found = _messages(events, unit)
    assert len(found["warnings"]) == MOST_RECORDS and found["warnings"][0]["text"] == "0"
    assert found["warnings_in_all"] == MOST_RECORDS + 3
    assert found["graph_breaks"] == [{"text": "one", "unit": None}] and "graph_breaks_in_all" not in found
    assert found["perf_hints"] == []


def test_nobody_knows_what_a_model_with_experts_reads():
    from types import SimpleNamespace

    import torch
    from assay_torch.models import Model, read_bytes
    config = SimpleNamespace(num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, hidden_size=4)
    plain = torch.nn.ModuleDict({"mlp": torch.nn.Linear(4, 4, bias=False)})
    experts = torch.nn.ModuleDict({"experts": torch.nn.Linear(4, 4, bias=False)})
    device = torch.device("cpu")
    assert read_bytes(Model(plain, config, device, "fp32"), 1, [0]) == 64
    assert read_bytes(Model(experts, config, device, "fp32"), 1, [0]) is None
