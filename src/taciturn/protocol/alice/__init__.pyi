from taciturn.protocol.alice.batch_seed import agree_seed as agree_seed
from taciturn.protocol.alice.circle import join_circle as join_circle
from taciturn.protocol.alice.inputs import AliceInputs as AliceInputs
from taciturn.protocol.alice.opening import greet as greet
from taciturn.protocol.alice.opening import greet_with_table as greet_with_table
from taciturn.protocol.alice.opening import with_key as with_key
from taciturn.protocol.alice.opening import with_seed as with_seed
from taciturn.protocol.alice.party import alice_program as alice_program
from taciturn.protocol.alice.party import dry_run as dry_run
from taciturn.protocol.alice.predict import predict as predict_rows
from taciturn.protocol.alice.predict_mutual import predict as predict_mutual_rows
from taciturn.protocol.alice.predict_sealed import predict as predict_sealed_rows
from taciturn.protocol.alice.product import unmasked_product as unmasked_product
from taciturn.protocol.alice.quality import hear as hear
from taciturn.protocol.alice.registry import TRAININGS as TRAININGS
from taciturn.protocol.alice.score_noise import ScoreNoise as ScoreNoise
from taciturn.protocol.alice.score_noise import noise_key as noise_key
from taciturn.protocol.alice.sealed import Keys as Keys
from taciturn.protocol.alice.sealed import own_scores as own_scores
from taciturn.protocol.alice.serve import Asked as Asked
from taciturn.protocol.alice.serve import Responder as Responder
from taciturn.protocol.alice.serve import RevealedAnswers as RevealedAnswers
from taciturn.protocol.alice.serve import SealedAnswers as SealedAnswers
from taciturn.protocol.alice.train_revealed import train as train
from taciturn.protocol.alice.whitened import WhitenedTable as WhitenedTable
from taciturn.protocol.alice.whitened import largest_bits as largest_bits

# Exported under another name than their module gives them.
__all__ = ["predict_mutual_rows", "predict_rows", "predict_sealed_rows"]
