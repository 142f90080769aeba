"""What the site adds to the pages, which are plain Markdown. `extension` is the part that Sphinx loads."""
