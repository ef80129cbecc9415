"""Commented files to begin with: one for each side, alike but for what is their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import OutputError
from taciturn.files import write_private
from taciturn.protocol.messages import Role

_AGREEMENT = """\
# --- The same on both sides: copy this section as it stands. ---------------------------------
# It is compared when the parties meet, and every difference is named.
[agreement]
mechanism = "{mechanism}"        # what protects the labels: see taciturn check, and docs/mechanisms
{protection}scheme = "bfv"             # encryption: bfv, or paillier (small messages, slower)
epochs = 10
batch-size = 64
minimum-batch = 8          # no batch may have fewer rows: it protects Alice's columns
learning-rate = 0.05
# l2 = 0.001
held-out = 0.2             # share of the rows on which Bob measures the model; 0 for none
split-salt = "{salt}"        # another text holds out other rows
evaluate = "end"           # or "epoch": Bob looks at the held-out rows after every epoch
# patience = 3             # with "epoch": stop when the held-out loss has not fallen for so long;
#                            when Bob stops depends on labels, and the ledger says so
"""

_OWN = """
# --- This side's own business: nothing below leaves this machine. ----------------------------
[data]
file = "{role}.csv"            # CSV or Parquet; rows in any order
id = "id"                  # the column that names the rows; the same names on both sides
# aligned = "{role}.aligned.csv"  # only these rows: the list that taciturn align writes
{label}# impute = "median"        # missing numbers: median, mean, or none (an error)
# scale = "standard"       # or none
# clip = 10                # largest size of a prepared value

[link]
{way}
peer = "{peer}"             # the name in the other side's certificate
ca = "certs/ca.pem"
certificate = "certs/{role}.pem"
key = "certs/{role}.key"
connect-seconds = 600      # how long to wait for the peer to be there
answer-seconds = 600       # how long to wait for its next message
dead-seconds = 20          # a link on which nothing moves for so long is given up and made anew

[state]
folder = "{role}-state"      # to go on after a stop; encrypted
key = "{role}.state.key"     # its key, made when absent; keep it on another disk, if you can
every-iterations = 100     # a checkpoint after so many iterations
every-seconds = 30         # or so many seconds, what comes first
sync = true                # wait for the disk before anything is sent

[output]
model = "{role}.model.json"
log = "{role}.log"           # one JSON object a line, no secrets
metrics = "{role}.metrics.json"  # how far, how fast; no secrets
{limits}"""

_LABEL = 'label = "label"            # the column of 0/1 labels\nintercept = true\n'
_LIMITS = """
[privacy]
# flips = "bob.flips.json"  # label-rr: keep this file; flipping labels anew spends again
# budget = 4               # stop before a label's epsilon, summed over releases, exceeds this
delta = 1e-6
"""
_WHO = {
    "alice": "Alice has columns and no labels; she is the one who must not learn them.",
    "bob": "Bob has the labels, and perhaps columns of his own.",
}
_PROTECTION = {
    "add": "epsilon = 1.0              # per release; a row is released once per epoch\n",
    "mult": 'epsilon = 1.0              # per release\nvariant = "mean-one"\n',
    "hybrid": "alice-columns = 30         # how many prepared columns Alice has\n",
    "label-rr": "epsilon = 1.0              # in total\n",
}
# Mechanisms after which a label is an open book; the ledger says infinite.
UNPROTECTED = ("none", "hybrid")
_WARNING = "#                            {mechanism} gives labels NO protection\n"
_COMMENT_AT = 27


@dataclass(frozen=True, slots=True)
class Trial:
    """What the files to begin with are made for.

    Args:
        mechanism: What protects the labels.
        serves: Which side opens a port.
        address: Where: ``host:port``, as the other side reaches it.
        salt: What decides the held-out rows.
    """

    mechanism: str
    serves: Role = "bob"
    address: str = "localhost:9443"
    salt: str = "trial"


def template(role: Role, trial: Trial) -> str:
    """The file of one side."""
    peer: Role = "bob" if role == "alice" else "alice"
    port = trial.address.rpartition(":")[2]
    way = (
        f'listen = "0.0.0.0:{port}"   # this side opens the port'
        if role == trial.serves
        else f'connect = "{trial.address}"  # the other side opens the port'
    )
    warned = _WARNING.format(mechanism=trial.mechanism) if trial.mechanism in UNPROTECTED else ""
    agreement = _AGREEMENT.format(
        mechanism=trial.mechanism,
        protection=warned + _PROTECTION.get(trial.mechanism, ""),
        salt=trial.salt,
    )
    own = _OWN.format(
        role=role,
        peer=peer,
        way=way,
        label=_LABEL if role == "bob" else "",
        limits=_LIMITS if role == "bob" else "",
    )
    head = f'# taciturn party {role}.toml\n# {_WHO[role]}\nrole = "{role}"\n\n'
    return _aligned(head + agreement + own)


def _aligned(text: str) -> str:
    """The same text with the comments behind its values under each other."""
    return re.sub(
        r"^(\S.*?\S) {2,}#(?= \S)",
        lambda found: f"{found[1]:<{_COMMENT_AT - 2}}  #",
        text,
        flags=re.MULTILINE,
    )


def write_templates(folder: Path, trial: Trial) -> list[Path]:
    """Writes both files.

    Raises:
        OutputError: One is there already, or cannot be written; then neither is.
    """
    roles: tuple[Role, Role] = ("alice", "bob")
    paths = [folder / f"{role}.toml" for role in roles]
    for path in paths:
        if path.exists():
            raise OutputError(
                "there is such a file already, and it may hold your settings",
                where=str(path),
                hint="name another folder with --folder, or move the file away",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(
            f"the folder cannot be made: {problem.strerror}",
            where=str(folder),
            hint="name another folder with --folder",
        ) from None
    for role, path in zip(roles, paths, strict=True):
        write_private(path, template(role, trial))
    return paths
