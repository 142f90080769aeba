"""How Sphinx makes the site out of the pages; script/site runs it.

The root of the sources is that of the repository, so that links lead from page to page as they do there.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

project = "forq-trio"
author = "The forq-trio authors"
project_copyright = author
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "docs._site.extension"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "README.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/orders/README.md",
]
exclude_patterns = [
    ".*",
    "bench",
    "build",
    "data",
    "deploy",
    "docs/_*",
    "forq_trio",
    "pyspark_forq",
    "script",
    "tests",
    "web",
]

nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # other libraries' documentation is not at hand offline
suppress_warnings = ["misc.highlighting_failure"]  # examples leave things out
smartquotes = False  # they would make one dash of the two before an option
highlight_language = "text"
pygments_style = "tango"
pygments_dark_style = "monokai"

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "forq-trio"
html_static_path = ["_static"]
html_css_files = ["forq.css"]
html_extra_path = ["_root"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
