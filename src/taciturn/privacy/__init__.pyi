from taciturn.privacy.additive import Additive as Additive
from taciturn.privacy.base import EncryptedMechanism as EncryptedMechanism
from taciturn.privacy.base import GradientMechanism as GradientMechanism
from taciturn.privacy.base import MaskedProduct as MaskedProduct
from taciturn.privacy.base import Mechanism as Mechanism
from taciturn.privacy.base import Released as Released
from taciturn.privacy.base import ResidueMechanism as ResidueMechanism
from taciturn.privacy.batch_response import BatchDesign as BatchDesign
from taciturn.privacy.batch_response import HiddenBatch as HiddenBatch
from taciturn.privacy.batch_response import Hybrid as Hybrid
from taciturn.privacy.batch_response import acceptance as acceptance
from taciturn.privacy.batch_response import conditioning as conditioning
from taciturn.privacy.batch_response import design as design
from taciturn.privacy.batch_response import draw_batch as draw_batch
from taciturn.privacy.composition import label_epsilon as label_epsilon
from taciturn.privacy.events import AdditiveNoise as AdditiveNoise
from taciturn.privacy.events import BatchResponse as BatchResponse
from taciturn.privacy.events import CiphertextsOnly as CiphertextsOnly
from taciturn.privacy.events import FlippedLabelGradient as FlippedLabelGradient
from taciturn.privacy.events import HiddenBatchGradient as HiddenBatchGradient
from taciturn.privacy.events import LabelResponse as LabelResponse
from taciturn.privacy.events import MeanOneFactor as MeanOneFactor
from taciturn.privacy.events import MultiplicativeNoise as MultiplicativeNoise
from taciturn.privacy.events import NoisyAccuracy as NoisyAccuracy
from taciturn.privacy.events import NoisyModel as NoisyModel
from taciturn.privacy.events import NonPrivate as NonPrivate
from taciturn.privacy.events import OneSidedFactor as OneSidedFactor
from taciturn.privacy.events import PrintedFactor as PrintedFactor
from taciturn.privacy.events import PrivacyEvent as PrivacyEvent
from taciturn.privacy.gaussian import delta_of as delta_of
from taciturn.privacy.gaussian import deviation as deviation
from taciturn.privacy.gaussian import draw as draw_gaussian
from taciturn.privacy.label_response import FlippedLabels as FlippedLabels
from taciturn.privacy.laplace import ON_INTEGERS as ON_INTEGERS
from taciturn.privacy.laplace import ON_REALS as ON_REALS
from taciturn.privacy.laplace import log_at_least as log_at_least
from taciturn.privacy.laplace import log_density as log_density
from taciturn.privacy.laplace import log_mass as log_mass
from taciturn.privacy.laplace import log_mass_at_least as log_mass_at_least
from taciturn.privacy.ledger import DEFAULT_DELTA as DEFAULT_DELTA
from taciturn.privacy.ledger import Ledger as Ledger
from taciturn.privacy.model_release import ModelRelease as ModelRelease
from taciturn.privacy.model_release import rounding_error as rounding_error
from taciturn.privacy.multiplicative import VARIANTS as VARIANTS
from taciturn.privacy.multiplicative import MeanOne as MeanOne
from taciturn.privacy.multiplicative import Multiplicative as Multiplicative
from taciturn.privacy.multiplicative import Printed as Printed
from taciturn.privacy.mutual import ASSUMPTION as MUTUAL_ASSUMPTION
from taciturn.privacy.mutual import Mutual as Mutual
from taciturn.privacy.noise import SMALLEST_DIVISOR as SMALLEST_DIVISOR
from taciturn.privacy.noise import UNIT_BITS as UNIT_BITS
from taciturn.privacy.noise import LaplaceDraws as LaplaceDraws
from taciturn.privacy.noise import Stock as Stock
from taciturn.privacy.noise import continuous_laplace as continuous_laplace
from taciturn.privacy.noise import decaying_coins as decaying_coins
from taciturn.privacy.noise import divisor as divisor
from taciturn.privacy.noise import draw as draw_noise
from taciturn.privacy.noise import geometric as geometric
from taciturn.privacy.noise import response_flips as response_flips
from taciturn.privacy.noise import scale as scale
from taciturn.privacy.prices import EVENTS as EVENTS
from taciturn.privacy.prices import Price as Price
from taciturn.privacy.prices import price as price
from taciturn.privacy.prices import printed_label_price as printed_label_price
from taciturn.privacy.registry import MECHANISMS as MECHANISMS
from taciturn.privacy.registry import OURS as OURS
from taciturn.privacy.registry import mechanism as mechanism
from taciturn.privacy.registry import mechanism_class as mechanism_class
from taciturn.privacy.registry import taken as taken
from taciturn.privacy.sealed import ASSUMPTION as SEALED_ASSUMPTION
from taciturn.privacy.sealed import Sealed as Sealed
from taciturn.privacy.statement import Statement as Statement
from taciturn.privacy.told_quality import STEPS as STEPS
from taciturn.privacy.told_quality import release as release
from taciturn.privacy.told_quality import told_quality as read_told_quality
from taciturn.privacy.unprotected import Unprotected as Unprotected

# Exported under another name than their module gives them.
__all__ = [
    "MUTUAL_ASSUMPTION",
    "SEALED_ASSUMPTION",
    "draw_gaussian",
    "draw_noise",
    "read_told_quality",
]
