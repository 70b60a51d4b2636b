"""How Sphinx makes the site of docs/: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from viewfold import __version__  # noqa: E402

project = "viewfold"
author = "the viewfold developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "viewfold_site",
]
exclude_patterns = ["_build", "_ext", "gallery", "**sg_execution_times.rst"]
nitpicky = True
suppress_warnings = [
    "config.cache",  # the order of the gallery is a class, which cannot be pickled
]
highlight_language = "none"
smartquotes = False  # --quiet is no dash

# ---- Markdown -----------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # links such as method.md#how-sure, as GitHub has them
myst_links_external_new_tab = False

# ---- reference ----------------------------------------------------------------------------------

default_role = "viewfold"  # `name` in a docstring: a link if it is a public name, else code
autodoc_typehints = "none"  # the sections of numpydoc say them in words
autodoc_mock_imports = ["pyspark", "py4j"]  # half a gigabyte, for one docstring
autodoc_member_order = "groupwise"
autodoc_inherit_docstrings = True
autosummary_generate = False  # a page for each module, not for each name: see _ext/viewfold_site.py
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
python_use_unqualified_type_names = True
nitpick_ignore_regex = [
    # Names of other packages: no inventory of theirs is fetched, the site is built offline.
    (r"py:.*", r"(sklearn|pandas|numpy|scipy|matplotlib|anndata|mudata|dask|pyspark|polars)\..*"),
    (r"py:class", r"(Exception|ValueError|OSError|Protocol|Generic|Enum|str|tuple|object)"),
    (r"py:class", r"(typing|abc|collections\.abc)\..*"),
]

# ---- gallery ------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/.*\.py",  # all of them are run
    "abort_on_example_error": False,
    "only_warn_on_example_error": True,  # a warning is an error of `make docs`
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 2,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "plot_gallery": True,
    "copyfile_regex": r"$^",
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
}

# ---- pages --------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "viewfold"
html_math_renderer = "svg"  # without MathJax, and so without a network
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"index": [], "faq": [], "glossary": [], "changelog": [], "auto_gallery/*": []}
html_theme_options = {
    "logo": {"text": "viewfold"},
    "header_links_before_dropdown": 9,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_nav_level": 1,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
