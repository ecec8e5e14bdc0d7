"""One module for each group of subcommands of `python -m trainer`: parse, build, call.

torch takes seconds to load: each command imports what it needs when it runs.
"""
