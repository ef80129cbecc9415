"""The declaration of ``align``."""

from taciturn.job_registry import JobCommand, JobDeclaration

ALIGNMENT = 3

ALIGN = JobDeclaration(
    name="align",
    purposes={ALIGNMENT: "an alignment"},
    messages={
        21: "taciturn.jobs.align.messages:AlignmentHello",
        22: "taciturn.jobs.align.messages:BlindedIds",
        23: "taciturn.jobs.align.messages:TwiceBlinded",
        24: "taciturn.jobs.align.messages:AlignmentEnd",
        38: "taciturn.jobs.align.messages:CommonToAll",
    },
    commands=(
        JobCommand(
            "align",
            "taciturn.jobs.align.command:align",
            "Two parties",
            "Find the rows that all parties have",
            after="doctor",
        ),
    ),
    results={"align": "taciturn.jobs.align.result:AlignmentResult"},
)
