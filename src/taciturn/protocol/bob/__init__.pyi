from taciturn.protocol.bob.forecast import forecast as forecast_ledger
from taciturn.protocol.bob.inputs import BobInputs as BobInputs
from taciturn.protocol.bob.inputs import released_labels as released_labels
from taciturn.protocol.bob.observations import BatchScored as BatchScored
from taciturn.protocol.bob.observations import BobObservation as BobObservation
from taciturn.protocol.bob.observations import BobSignal as BobSignal
from taciturn.protocol.bob.observations import DirectionScored as DirectionScored
from taciturn.protocol.bob.opening import agree_seed as agree_seed
from taciturn.protocol.bob.opening import form_group as form_group
from taciturn.protocol.bob.opening import greet as greet
from taciturn.protocol.bob.opening import with_key as with_key
from taciturn.protocol.bob.opening import with_seed as with_seed
from taciturn.protocol.bob.partners import Partner as Partner
from taciturn.protocol.bob.partners import Partners as Partners
from taciturn.protocol.bob.party import TRAININGS as TRAININGS
from taciturn.protocol.bob.party import bob_program as bob_program
from taciturn.protocol.bob.party import dry_run as dry_run
from taciturn.protocol.bob.row_sums import read_sums as read_sums
from taciturn.protocol.bob.row_sums import shared_sum as shared_sum
from taciturn.protocol.bob.scoring import MutualRequester as MutualRequester
from taciturn.protocol.bob.scoring import RevealedRequester as RevealedRequester
from taciturn.protocol.bob.scoring import SealedRequester as SealedRequester
from taciturn.protocol.bob.scoring import ask_rows as ask_rows
from taciturn.protocol.bob.scoring import score_requester as score_requester
from taciturn.protocol.bob.sealed import Keys as Keys
from taciturn.protocol.bob.train_residues import train as train

# Exported under another name than its module gives it.
__all__ = ["forecast_ledger"]
