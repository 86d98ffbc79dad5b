"""What the evidence does where something isn't there, or is there too often."""


def test_of_too_many_records_the_first_are_kept_and_all_are_counted():
    from assay_torch.evidence import MOST_RECORDS, _messages
    from assay_torch.watch import Events
    events = Events(warnings=[{"text": str(n)} for n in range(MOST_RECORDS + 3)], graph_breaks=[{"text": "one"}])
    found = _messages(events)
    assert len(found["warnings"]) == MOST_RECORDS and found["warnings"][0]["text"] == "0"
    assert found["warnings_in_all"] == MOST_RECORDS + 3
    assert found["graph_breaks"] == [{"text": "one"}] and "graph_breaks_in_all" not in found


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
