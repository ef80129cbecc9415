"""The declaration of ``serve``."""

from taciturn.job_registry import JobCommand, JobDeclaration, Namespace, Section

SERVING = 7
ASKED = Namespace("asked-rows", "rows today", "rows_per_day")
"""Rows that a caller, or the peer, asks for; an entry for each day."""
ANSWERS = Namespace("answers", "answers of a row")
"""Answers of a service that hold a row."""
DAILY = Namespace("daily-rows", "scores of a row today", "requests_per_row_per_day")
"""How often a row is asked for today, by all callers together."""

SERVE = JobDeclaration(
    name="serve",
    purposes={SERVING: "scores on demand"},
    messages={
        1: "taciturn.protocol.messages:Hello",
        2: "taciturn.protocol.messages:KeyOffer",
        3: "taciturn.protocol.messages:PartialScores",
        12: "taciturn.protocol.messages:BatchCommitment",
        13: "taciturn.protocol.messages:BatchShare",
        15: "taciturn.protocol.messages:EpochVerdict",
        16: "taciturn.protocol.messages:SealedWeights",
        17: "taciturn.protocol.messages:SealedScores",
        27: "taciturn.protocol.messages:SharedVector",
        28: "taciturn.protocol.messages:SharedProduct",
        33: "taciturn.protocol.messages:Introduction",
        34: "taciturn.protocol.messages:Roster",
        35: "taciturn.protocol.messages:Endorsement",
        36: "taciturn.protocol.messages:Endorsements",
        37: "taciturn.protocol.messages:MaskedScores",
        42: "taciturn_ops.serve.messages:RowsAsked",
        43: "taciturn_ops.serve.messages:RowsHeld",
        44: "taciturn_ops.serve.messages:RowsDue",
    },
    section=Section(
        "serve",
        "taciturn_ops.serve.section:ServeSection",
        template={
            "alice": ("#source", "#rows_per_day"),
            "bob": (
                "#source",
                "#tokens",
                "#address",
                "#rows_per_day",
                "#requests_per_row_per_day",
            ),
        },
    ),
    namespaces=(ASKED, ANSWERS, DAILY),
    commands=(
        JobCommand(
            "serve",
            "taciturn_ops.serve.command:serve",
            "After training",
            "Serve scores on demand over HTTP",
            after="predict",
        ),
    ),
)
