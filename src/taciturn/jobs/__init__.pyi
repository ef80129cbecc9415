from taciturn.jobs.base import Consent as Consent
from taciturn.jobs.base import Job as Job
from taciturn.jobs.base import RunContext as RunContext
from taciturn.jobs.base import SessionFacts as SessionFacts
from taciturn.jobs.base import Side as Side
from taciturn.jobs.base import run_party as run_party
from taciturn.jobs.base import simulate_job as simulate_job
from taciturn.jobs.resumable import ResumableSide as ResumableSide
