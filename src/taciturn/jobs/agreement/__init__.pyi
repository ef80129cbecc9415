from taciturn.jobs.agreement.propose import proposal_text as proposal_text
from taciturn.jobs.agreement.propose import propose as propose_agreement
from taciturn.jobs.agreement.report import review_page as review_page
from taciturn.jobs.agreement.result import Review as Review
from taciturn.jobs.agreement.review import review as review_agreement
from taciturn.jobs.agreement.sign import sign_file as sign_agreement_file
from taciturn.jobs.agreement.sign import signature_block as signature_block
from taciturn.jobs.agreement.sign import signed as signed

# Exported under another name than their module gives them.
__all__ = ["propose_agreement", "review_agreement", "sign_agreement_file"]
