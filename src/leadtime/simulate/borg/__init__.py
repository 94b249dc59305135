"""A Borg-like trace drawn from hidden states, with its truth: labels, exclusions and the best score anyone could give.

Knows nothing of labels, features or training (an import contract holds it): the truth comes from the hidden states.
"""
