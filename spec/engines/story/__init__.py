"""Behaviours as stories: steps with their grounds, messages and changes; why-not; one JSON document.

Says nothing of its own: a behaviour comes from an engine and is taken again, step by step, in the interpreter.
"""

from viewproof.spec.engines.story.behaviour import Ending, Leaf, Story, StoryStep, Taken, broken, tell
from viewproof.spec.engines.story.document import FORMAT, to_json
from viewproof.spec.engines.story.why_not import Question, Reason, parse_question, why_not

__all__ = [
    "FORMAT",
    "Ending",
    "Leaf",
    "Question",
    "Reason",
    "Story",
    "StoryStep",
    "Taken",
    "broken",
    "parse_question",
    "tell",
    "to_json",
    "why_not",
]
