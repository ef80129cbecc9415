from taciturn.report.blocks import Badge as Badge
from taciturn.report.blocks import Block as Block
from taciturn.report.blocks import Bullets as Bullets
from taciturn.report.blocks import Card as Card
from taciturn.report.blocks import Cards as Cards
from taciturn.report.blocks import Command as Command
from taciturn.report.blocks import Details as Details
from taciturn.report.blocks import Facts as Facts
from taciturn.report.blocks import Figure as Figure
from taciturn.report.blocks import Figures as Figures
from taciturn.report.blocks import Heading as Heading
from taciturn.report.blocks import Page as Page
from taciturn.report.blocks import Paragraph as Paragraph
from taciturn.report.blocks import Section as Section
from taciturn.report.blocks import Span as Span
from taciturn.report.blocks import Table as Table
from taciturn.report.blocks import coded as coded
from taciturn.report.blocks import table as table
from taciturn.report.html import render as render_html
from taciturn.report.markdown import escape as escape
from taciturn.report.markdown import render as render_markdown
from taciturn.report.terminal import WIDTH as WIDTH
from taciturn.report.terminal import render as render_terminal
from taciturn.report.training import SHARED_PEOPLE as SHARED_PEOPLE
from taciturn.report.training import training_blocks as training_blocks
from taciturn.report.training import worth_facts as worth_facts

# Exported under another name than their module gives them.
__all__ = ["render_html", "render_markdown", "render_terminal"]
