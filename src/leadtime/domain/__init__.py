"""The nouns of leadtime: frozen values that cross a seam. Imports nothing of ours.

Whatever a source returns, a room hands on or the ledger stores is defined here, with its unit in the name.
"""
