"""``sealed`` through the front door: the centralised model, an audit without signals, forecasts."""

from __future__ import annotations

from taciturn import audit, check


def test_a_revealed_share_is_priced_and_gives_alice_a_model(tmp_path):
    result = audit(
        dataset="breast-cancer", mechanism="sealed", scheme="clear", seed=1, passes=2, reveal=True
    ).to_dict()
    assert result["ledger"]["label_epsilon_total"] == "inf"
    assert {control["name"] for control in result["controls"]} == {"prior", "model-only"}
    assert "RevealedShare" in {message["message"] for message in result["messages"]}


def test_a_check_warns_alice_of_her_columns_and_bob_of_what_it_rests_on():
    result = check(columns=6, rows=300, mechanism="sealed", passes=6).to_dict()
    # exact: a word of the contract, by which scripts decide
    assert result["verdict"] == "no attack of ours applies"
    assert result["facts"]["label_epsilon_total"] == 0
    warnings = result["warnings"]
    assert any("Alice" in warning for warning in warnings)
    assert any("funcCPA" in warning for warning in warnings)
    fresh = check(columns=6, rows=300, mechanism="sealed", passes=1, fresh_keys=True)
    assert not any("funcCPA" in warning for warning in fresh.warnings)
