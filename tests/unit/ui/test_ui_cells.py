"""Live cells: what a page shows, and what of it has changed."""

from markupsafe import Markup

from forq_trio.ui.cells import Cells, changed


def test_a_cell_is_an_element_and_is_noted_by_its_key():
    cells = Cells()
    html = cells.td("q:orders:ready", "1,200", "num", "exact")
    assert html == '<td data-live="q:orders:ready" class="num" title="exact">1,200</td>'
    assert cells.html == {"q:orders:ready": html}


def test_text_is_escaped_and_markup_is_not():
    cells = Cells()
    assert "&lt;b&gt;" in cells.span('"><script>', "<b>", '"', "'\"")
    assert cells.span("k", Markup("<b>1</b>")) == '<span data-live="k"><b>1</b></span>'
    assert "<script>" not in cells.html['"><script>']


def test_changed_are_those_that_differ_and_those_that_are_new():
    assert changed({"a": "1", "b": "2", "gone": "3"}, {"a": "1", "b": "4", "c": "5"}) == {"b": "4", "c": "5"}
    assert changed({}, {}) == {}
