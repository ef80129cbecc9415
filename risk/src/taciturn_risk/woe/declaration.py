"""The declaration of ``woe``."""

from taciturn.job_registry import JobCommand, JobDeclaration, Namespace, Section

WEIGHT_OF_EVIDENCE = 8
TABLES = Namespace("woe-tables", "tables", "tables")

WOE = JobDeclaration(
    name="woe",
    purposes={WEIGHT_OF_EVIDENCE: "weights of evidence"},
    messages={
        1: "taciturn.protocol.messages:Hello",
        2: "taciturn.protocol.messages:KeyOffer",
        12: "taciturn.protocol.messages:BatchCommitment",
        13: "taciturn.protocol.messages:BatchShare",
        39: "taciturn_risk.woe.messages:BinnedColumn",
        40: "taciturn_risk.woe.messages:SealedLabels",
        41: "taciturn_risk.woe.messages:BinSums",
    },
    section=Section(
        "woe",
        "taciturn_risk.woe.section:WoeSection",
        template={"alice": ("#allow", "#share_names", "#tables")},
        one_alice=True,
    ),
    namespaces=(TABLES,),
    commands=(
        JobCommand(
            "woe",
            "taciturn_risk.woe.command:woe",
            "Two parties",
            "Weight of evidence of Alice's columns",
            after="party",
        ),
    ),
    results={"woe": "taciturn_risk.woe.result:WoeResult"},
)
