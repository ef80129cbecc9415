"""The declaration of ``predict``."""

from taciturn.job_registry import JobCommand, JobDeclaration

LISTED_PREDICTION, PREDICTION = 4, 5

PREDICT = JobDeclaration(
    name="predict",
    purposes={
        LISTED_PREDICTION: "a prediction of listed rows",
        PREDICTION: "a prediction that aligns first",
    },
    messages={
        1: "taciturn.protocol.messages:Hello",
        2: "taciturn.protocol.messages:KeyOffer",
        3: "taciturn.protocol.messages:PartialScores",
        12: "taciturn.protocol.messages:BatchCommitment",
        13: "taciturn.protocol.messages:BatchShare",
        15: "taciturn.protocol.messages:EpochVerdict",
        16: "taciturn.protocol.messages:SealedWeights",
        17: "taciturn.protocol.messages:SealedScores",
        21: "taciturn.jobs.align.messages:AlignmentHello",
        22: "taciturn.jobs.align.messages:BlindedIds",
        23: "taciturn.jobs.align.messages:TwiceBlinded",
        24: "taciturn.jobs.align.messages:AlignmentEnd",
        27: "taciturn.protocol.messages:SharedVector",
        28: "taciturn.protocol.messages:SharedProduct",
        33: "taciturn.protocol.messages:Introduction",
        34: "taciturn.protocol.messages:Roster",
        35: "taciturn.protocol.messages:Endorsement",
        36: "taciturn.protocol.messages:Endorsements",
        37: "taciturn.protocol.messages:MaskedScores",
        38: "taciturn.jobs.align.messages:CommonToAll",
    },
    commands=(
        JobCommand(
            "predict",
            "taciturn.jobs.predict.command:predict",
            "After training",
            "Score new rows with the peer",
        ),
    ),
    results={"predict": "taciturn.jobs.predict.result:PredictionResult"},
)
