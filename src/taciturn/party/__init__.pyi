from taciturn.party.agreed import peer_keys as peer_keys
from taciturn.party.agreed import require_begun_in_time as require_begun_in_time
from taciturn.party.agreed import require_signed as require_signed
from taciturn.party.agreement_file import AgreementFile as AgreementFile
from taciturn.party.agreement_file import Signature as Signature
from taciturn.party.aligned import AlignedRows as AlignedRows
from taciturn.party.aligned import require_kind as require_kind
from taciturn.party.aligned import require_room as require_room
from taciturn.party.bulletin import Bulletin as Bulletin
from taciturn.party.config import ACCEPTED_EXPOSURE as ACCEPTED_EXPOSURE
from taciturn.party.config import ACCEPTED_LEAK as ACCEPTED_LEAK
from taciturn.party.config import DERIVED as DERIVED
from taciturn.party.config import SECTIONS as SECTIONS
from taciturn.party.config import UNWRITTEN as UNWRITTEN
from taciturn.party.config import PartyConfig as PartyConfig
from taciturn.party.config import file_default as file_default
from taciturn.party.config import party_file as party_file
from taciturn.party.config import section_settings as section_settings
from taciturn.party.exposition import METRICS as METRICS
from taciturn.party.exposition import LinkSeen as LinkSeen
from taciturn.party.exposition import Standing as Standing
from taciturn.party.exposition import exposition as prometheus_text
from taciturn.party.identity import credentials_of as credentials_of
from taciturn.party.identity import identity_of as identity_of
from taciturn.party.identity import signer as signer
from taciturn.party.journal import NONCE_BYTES as NONCE_BYTES
from taciturn.party.journal import UNKNOWN as UNKNOWN
from taciturn.party.journal import Checkpoint as Checkpoint
from taciturn.party.journal import Journal as Journal
from taciturn.party.journal import Meta as Meta
from taciturn.party.journal import Past as Past
from taciturn.party.keep import key_place as key_place
from taciturn.party.keep import state_key as state_key
from taciturn.party.link import ALIGNMENT as ALIGNMENT
from taciturn.party.link import BROKEN as BROKEN
from taciturn.party.link import DRY_RUN as DRY_RUN
from taciturn.party.link import LISTED_PREDICTION as LISTED_PREDICTION
from taciturn.party.link import PREDICTION as PREDICTION
from taciturn.party.link import VERSION as VERSION
from taciturn.party.link import Link as Link
from taciturn.party.link import Pace as Pace
from taciturn.party.link import Patience as Patience
from taciturn.party.link import Traffic as Traffic
from taciturn.party.log import Figures as Figures
from taciturn.party.log import Log as Log
from taciturn.party.model_file import model_share as model_share
from taciturn.party.model_report import Question as ReportQuestion
from taciturn.party.model_report import model_report as make_model_report
from taciturn.party.new_rows import new_rows as read_new_rows
from taciturn.party.playback import Rhythm as Rhythm
from taciturn.party.playback import run_program as run_program
from taciturn.party.prepared import PreparedFolder as PreparedFolder
from taciturn.party.propose import proposal_text as proposal_text
from taciturn.party.propose import propose as propose_agreement
from taciturn.party.review import review as review_agreement
from taciturn.party.session import Meeting as Meeting
from taciturn.party.session import PeerSession as PeerSession
from taciturn.party.session import tellable as tellable
from taciturn.party.shelf import SealedShelf as SealedShelf
from taciturn.party.side import terms_of as terms_of
from taciturn.party.sign_file import block as block
from taciturn.party.sign_file import sign_file as sign_agreement_file
from taciturn.party.signing import Verifier as Verifier
from taciturn.party.signing import day as day
from taciturn.party.signing import require_in_time as require_in_time
from taciturn.party.signing import signed as signed
from taciturn.party.signing import statement as statement
from taciturn.party.signing import verified as verified
from taciturn.party.tables import PartyTables as PartyTables
from taciturn.party.tables import load_tables as load_tables
from taciturn.party.templates import Trial as Trial
from taciturn.party.templates import template as template
from taciturn.party.templates import write_templates as write_templates
from taciturn.party.used_model import UsedModel as UsedModel
from taciturn.party.vault import KEY_BYTES as KEY_BYTES
from taciturn.party.vault import MAGIC as MAGIC
from taciturn.party.vault import Vault as Vault
from taciturn.party.vault import reporting_write_errors as reporting_write_errors
from taciturn.party.way import way_to_peer as way_to_peer

# Exported under another name than their module gives them.
__all__ = [
    "ReportQuestion",
    "make_model_report",
    "prometheus_text",
    "propose_agreement",
    "read_new_rows",
    "review_agreement",
    "sign_agreement_file",
]
