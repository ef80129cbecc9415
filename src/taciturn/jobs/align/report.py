"""An alignment as blocks: how many rows are common, where the list is, and what comes next."""

from __future__ import annotations

from taciturn.data.normalisation import Normalisation, describe_spellings, further
from taciturn.jobs.align.result import AlignmentResult
from taciturn.report.blocks import Block, Facts, Paragraph
from taciturn.report.words import share, time_with_waits, traffic

# Below it, ways to spell ids are named also where this side's table is consistent in them.
_LOW_MATCH = 0.8
_NO_LIST = "the peer has not confirmed the last message; if it has no list, run both again"


def alignment_blocks(result: AlignmentResult) -> list[Block]:
    """How many rows are common, where the list is, and what comes next."""
    facts = {
        **_common_rows(result),
        "normalised": result.normalise_ids,
        "time": time_with_waits(result.seconds, result.waiting_seconds),
        "traffic": traffic(result.bytes_sent, result.bytes_received),
        "list": result.file,
    }
    title = Paragraph(f"{result.role} with {result.peer}: alignment", "strong")
    return [
        title,
        Facts(facts),
        *_spellings(result),
        *_settings(result),
        *([] if result.peer_confirmed else [Paragraph(_NO_LIST, "warning")]),
    ]


def _common_rows(result: AlignmentResult) -> dict[str, str]:
    here = f"{result.common:,}: {share(result.common / result.ids, 1)} of {result.ids:,} here"
    if result.parties is None:
        there = f"{share(result.common / result.peer_ids, 1)} of {result.peer_ids:,} there"
        return {"common rows": f"{here}, {there}"}
    shared = {
        f"shared with {peer.name}": f"{peer.common:,}: {share(peer.common / result.ids, 1)} of "
        f"{result.ids:,} here, {share(peer.common / peer.ids, 1)} of {peer.ids:,} there"
        for peer in result.parties
    }
    return {"common to all": here, **shared}


def _spellings(result: AlignmentResult) -> list[Block]:
    low = result.match < _LOW_MATCH
    tried = [spelling for spelling in result.spellings if low or spelling.mixed]
    if not tried:
        return []
    better = further(Normalisation.of(result.normalise_ids), tried)
    way_out = f"; to try it, give --normalise-ids {better} on both sides"
    words = f"Of the spelling: {describe_spellings(tried, result.ids)}"
    return [Paragraph(f"{words}{way_out if any(not one.merges for one in tried) else ''}.")]


def _settings(result: AlignmentResult) -> list[Block]:
    if result.added:
        return [Paragraph(f"wrote into {result.settings}, under [data]: {'; '.join(result.added)}")]
    if result.to_add:
        lines = "; ".join(result.to_add)
        words = f"To train on these rows, write into {result.settings}, under [data]: {lines}"
        return [Paragraph(words, "warning")]
    return []
