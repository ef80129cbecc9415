from taciturn.deploy.agreed import peer_keys as peer_keys
from taciturn.deploy.agreed import require_begun_in_time as require_begun_in_time
from taciturn.deploy.agreed import require_signed as require_signed
from taciturn.deploy.agreement_file import AgreementFile as AgreementFile
from taciturn.deploy.agreement_file import Signature as Signature
from taciturn.deploy.aligned import AlignedRows as AlignedRows
from taciturn.deploy.aligned import require_kind as require_kind
from taciturn.deploy.aligned import require_room as require_room
from taciturn.deploy.assess import Ended as Ended
from taciturn.deploy.bulletin import Bulletin as Bulletin
from taciturn.deploy.config import ACCEPTED_EXPOSURE as ACCEPTED_EXPOSURE
from taciturn.deploy.config import ACCEPTED_LEAK as ACCEPTED_LEAK
from taciturn.deploy.config import DERIVED as DERIVED
from taciturn.deploy.config import SECTIONS as SECTIONS
from taciturn.deploy.config import UNWRITTEN as UNWRITTEN
from taciturn.deploy.config import DataSection as DataSection
from taciturn.deploy.config import PartyConfig as PartyConfig
from taciturn.deploy.config import file_default as file_default
from taciturn.deploy.config import party_file as party_file
from taciturn.deploy.config import section_settings as section_settings
from taciturn.deploy.exposition import METRICS as METRICS
from taciturn.deploy.exposition import LinkSeen as LinkSeen
from taciturn.deploy.exposition import Standing as Standing
from taciturn.deploy.exposition import exposition as prometheus_text
from taciturn.deploy.identity import credentials_of as credentials_of
from taciturn.deploy.identity import identity_of as identity_of
from taciturn.deploy.identity import signer as signer
from taciturn.deploy.journal import NONCE_BYTES as NONCE_BYTES
from taciturn.deploy.journal import UNKNOWN as UNKNOWN
from taciturn.deploy.journal import Checkpoint as Checkpoint
from taciturn.deploy.journal import Journal as Journal
from taciturn.deploy.journal import Meta as Meta
from taciturn.deploy.journal import Past as Past
from taciturn.deploy.keep import key_place as key_place
from taciturn.deploy.keep import state_key as state_key
from taciturn.deploy.link import ALIGNMENT as ALIGNMENT
from taciturn.deploy.link import BROKEN as BROKEN
from taciturn.deploy.link import DRY_RUN as DRY_RUN
from taciturn.deploy.link import LISTED_PREDICTION as LISTED_PREDICTION
from taciturn.deploy.link import PREDICTION as PREDICTION
from taciturn.deploy.link import VERSION as VERSION
from taciturn.deploy.link import Link as Link
from taciturn.deploy.link import Pace as Pace
from taciturn.deploy.link import Patience as Patience
from taciturn.deploy.link import Traffic as Traffic
from taciturn.deploy.log import Figures as Figures
from taciturn.deploy.log import Log as Log
from taciturn.deploy.model_file import model_share as model_share
from taciturn.deploy.model_report import Question as ReportQuestion
from taciturn.deploy.model_report import model_report as make_model_report
from taciturn.deploy.new_rows import new_rows as read_new_rows
from taciturn.deploy.outlook import outlook as training_outlook
from taciturn.deploy.playback import Rhythm as Rhythm
from taciturn.deploy.playback import run_program as run_program
from taciturn.deploy.prepared import PreparedFolder as PreparedFolder
from taciturn.deploy.propose import proposal_text as proposal_text
from taciturn.deploy.propose import propose as propose_agreement
from taciturn.deploy.review import review as review_agreement
from taciturn.deploy.session import Meeting as Meeting
from taciturn.deploy.session import PeerSession as PeerSession
from taciturn.deploy.session import tellable as tellable
from taciturn.deploy.shelf import SealedShelf as SealedShelf
from taciturn.deploy.side import terms_of as terms_of
from taciturn.deploy.sign_file import block as block
from taciturn.deploy.sign_file import sign_file as sign_agreement_file
from taciturn.deploy.signing import Verifier as Verifier
from taciturn.deploy.signing import day as day
from taciturn.deploy.signing import require_in_time as require_in_time
from taciturn.deploy.signing import signed as signed
from taciturn.deploy.signing import statement as statement
from taciturn.deploy.signing import verified as verified
from taciturn.deploy.study import StudyParty as StudyParty
from taciturn.deploy.study_use import studied_model as studied_model
from taciturn.deploy.study_use import use_model as use_model
from taciturn.deploy.tables import PartyTables as PartyTables
from taciturn.deploy.tables import load_tables as load_tables
from taciturn.deploy.templates import Trial as Trial
from taciturn.deploy.templates import template as template
from taciturn.deploy.templates import write_templates as write_templates
from taciturn.deploy.train import Party as Party
from taciturn.deploy.train import Trainer as Trainer
from taciturn.deploy.used_model import UsedModel as UsedModel
from taciturn.deploy.vault import KEY_BYTES as KEY_BYTES
from taciturn.deploy.vault import MAGIC as MAGIC
from taciturn.deploy.vault import Vault as Vault
from taciturn.deploy.vault import reporting_write_errors as reporting_write_errors
from taciturn.deploy.way import way_to_peer as way_to_peer

# Exported under another name than their module gives them.
__all__ = [
    "ReportQuestion",
    "make_model_report",
    "prometheus_text",
    "propose_agreement",
    "read_new_rows",
    "review_agreement",
    "sign_agreement_file",
    "training_outlook",
]
