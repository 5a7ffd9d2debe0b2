"""How the properties are tried: the same examples in every run, unless one goes hunting.

A property that fails on one run in a thousand tells nothing about the change that happened to meet
it. Whoever changes code hunts for new examples, many more of them:

    python3 bootstrap.py test --hypothesis-profile=hunt
"""

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("hunt", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("steady")
