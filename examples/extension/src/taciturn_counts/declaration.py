"""The declaration of ``counts``: the entry point that makes it a job of Taciturn."""

from taciturn.job_registry import JobCommand, JobDeclaration, Namespace, Section

COUNTING = 128
"""Its number on the wire; those of jobs from outside are from 128 to 255."""
COLUMNS = Namespace("counted-columns", "columns", "columns")

COUNTS = JobDeclaration(
    name="counts",
    purposes={COUNTING: "counts of a column"},
    messages={
        1: "taciturn.protocol.messages:Hello",
        128: "taciturn_counts.messages:ColumnAsked",
        129: "taciturn_counts.messages:ColumnCounts",
    },
    section=Section(
        "counts",
        "taciturn_counts.section:CountsSection",
        template={"alice": ("#share", "#columns"), "bob": ("#column",)},
        one_alice=True,
    ),
    namespaces=(COLUMNS,),
    commands=(
        JobCommand(
            "counts",
            "taciturn_counts.command:counts",
            "Two parties",
            "How often each value of one of Alice's columns occurs",
            after="party",
        ),
    ),
    results={"counts": "taciturn_counts.result:CountsResult"},
)
