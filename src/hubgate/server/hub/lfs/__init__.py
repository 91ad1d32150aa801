"""Large files: kept once by their SHA-256, linked to each repo that was sent them.

Owns: the files, who of the repos may use which, uploads in one piece or many, links signed for a while.
"""
