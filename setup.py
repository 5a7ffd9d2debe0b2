"""Build hooks; the project's metadata is in setup.cfg."""

from setuptools import setup

setup()
