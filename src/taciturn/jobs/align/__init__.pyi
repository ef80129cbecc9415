from taciturn.jobs.align.intersection import IntersectionTask as IntersectionTask
from taciturn.jobs.align.intersection import Matches as Matches
from taciturn.jobs.align.intersection import MatchRequirement as MatchRequirement
from taciturn.jobs.align.intersection import hear_common as hear_common
from taciturn.jobs.align.intersection import match_each as match_each
from taciturn.jobs.align.intersection import tell_common as tell_common
from taciturn.jobs.align.intersection import terms_among as terms_among
from taciturn.jobs.align.job import SCRATCH as SCRATCH
from taciturn.jobs.align.job import AlignJob as AlignJob
from taciturn.jobs.align.job import thread_pool as thread_pool
from taciturn.jobs.align.pairwise import MAX_IDS as MAX_IDS
from taciturn.jobs.align.pairwise import SHARE_BYTES as SHARE_BYTES
from taciturn.jobs.align.pairwise import TURN_IDS as TURN_IDS
from taciturn.jobs.align.pairwise import Alignment as Alignment
from taciturn.jobs.align.pairwise import ElementBuckets as ElementBuckets
from taciturn.jobs.align.pairwise import Match as Match
from taciturn.jobs.align.pairwise import Spread as Spread
from taciturn.jobs.align.pairwise import align as align_program
from taciturn.jobs.align.pairwise import bits_for as bits_for
from taciturn.jobs.align.pairwise import common_to as common_to
from taciturn.jobs.align.pairwise import in_order_of_ids as in_order_of_ids
from taciturn.jobs.align.pairwise import match_ids as match_ids
from taciturn.jobs.align.result import AlignmentResult as AlignmentResult
from taciturn.jobs.align.result import SharedIds as SharedIds
from taciturn.jobs.align.simulation import AlignedStar as AlignedStar
from taciturn.jobs.align.simulation import align_ids as align_ids
from taciturn.jobs.align.simulation import align_lists as align_lists

# Exported under another name than its module gives it.
__all__ = ["align_program"]
