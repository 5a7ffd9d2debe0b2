"""Settings of Sphinx for the documents (docs/site.py)."""

from docs.site import LESSONS_CACHE, PAGES

project = "iotwin"
author = copyright = "iotwin contributors"
extensions = ["myst_nb", "docs.site"]
root_doc = "README"
include_patterns = list(PAGES)
# Folders that have no pages; Sphinx need not look into them.
exclude_patterns = [".*", "build", "dist", "tests", "notebooks/work"]
nb_custom_formats = {".py": "docs.site.student_copy"}
nb_execution_mode = "cache"
nb_execution_cache_path = str(LESSONS_CACHE)
nb_execution_timeout = 600
nb_execution_raise_on_error = True
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type"]
html_theme = "furo"
html_title = "iotwin"
html_show_sphinx = False
html_copy_source = False
