"""Unblock: would move or resize what keeps a pod Pending. It has a seat and a rank, and proposes nothing yet.

Why nothing: an unblocking proposal must name the predicate that fails and whom the change would hurt, and that is the
diagnosis of waiting pods (pod × node × predicate), which the loop does not run in a tick. A guess would be worse than
silence, because unblock outranks scaling.
"""

from leadtime.domain.decision import Proposal
from leadtime.propose.context import TickContext


def propose(context: TickContext) -> tuple[Proposal, ...]:
    """Nothing, for the reason at the top of this module."""
    del context
    return ()
