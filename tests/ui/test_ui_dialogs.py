"""Every dialog in a browser: anybody can use it, Esc closes it and gives the focus back. And going by keyboard."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import ElementHandle, Page, expect

from support.browser import DESKTOP, PHONE, axe, keyboard, sideways_pixels

OPENERS = "button[hx-target='#dialog'], form[hx-target='#dialog'] button, [data-do=jump], [data-do=keys]"
PLACES = ("/", "/queue/emails", "/dead/emails-dlq", "/system")
DIALOGS = {
    "jump", "keys", "send", "settings", "purge", "delete-all", "redrive/ask", "delete/ask", "new", "revoke",
    "sessions/end", "edit", "message/edit", "message/copy",
}  # fmt: skip


def name_of(opener: ElementHandle) -> str | None:
    """What a button opens; None if it does something else, or is inside a dialog."""
    if opener.evaluate("button => Boolean(button.closest('dialog')) || 'ask' in button.dataset"):
        return None
    if what := opener.get_attribute("data-do"):
        return what
    url = opener.evaluate(
        "button => ['hx-get', 'hx-post'].map(name => button.closest(`[${name}]`)?.getAttribute(name)).find(Boolean)"
    )
    parts = urlsplit(url).path.split("/")
    if "message" in parts:
        return f"message/{parts[-1]}"
    return "/".join(parts[-2:]) if parts[-1] in ("ask", "end") else parts[-1]


def shown(opener: ElementHandle) -> bool:
    """Whether it can be pressed, after its menu was opened if it is in one."""
    set_menu = "button => { const menu = button.closest('details'); if (menu) menu.open = %s; }"
    opener.evaluate(set_menu % "true")
    if opener.is_visible() and opener.is_enabled():
        return True
    opener.evaluate(set_menu % "false")
    return False


def dialogs_of(page: Page, seen: set[str]) -> None:
    """Open each dialog of a page that was not seen yet; what is about selected messages with one, and with many."""
    open_each(page, seen)
    for box in ("[data-select]", "[data-select-all]"):
        if page.locator(box).count() and page.locator(box).first.is_visible():
            page.locator(box).first.check()
            open_each(page, seen)


def open_each(page: Page, seen: set[str]) -> None:
    for opener in page.query_selector_all(OPENERS):
        name = name_of(opener)
        if name is None or name in seen or not shown(opener):
            continue
        seen.add(name)
        opener.click()
        dialog = page.locator("dialog[open]")
        expect(dialog).to_have_count(1)
        axe(dialog)
        assert sideways_pixels(page) <= 0, name
        expect(dialog.locator(":focus"), name).to_have_count(1)
        keyboard(page, "Escape")
        expect(dialog).to_have_count(0)
        # A button in a menu that has closed cannot have the focus: the menu's own has it.
        gets_it = "(button.closest('details')?.querySelector('summary') ?? button) === document.activeElement"
        page.wait_for_function(f"button => {gets_it}", arg=opener)


@pytest.mark.tier2
@pytest.mark.parametrize("view", [DESKTOP, PHONE | {"color_scheme": "dark"}], ids=["light", "phone-dark"])
def test_every_dialog_is_for_everybody_and_gives_the_focus_back(open_page, world, view) -> None:
    page = open_page(world, **view)
    seen: set[str] = set()
    for place in PLACES:
        page.goto(place)
        dialogs_of(page, seen)
    for queue in ("emails", "emails-dlq"):
        page.goto(f"/queue/{queue}")
        page.goto(page.locator("[data-page]").first.get_attribute("data-page"))
        dialogs_of(page, seen)
    # On a phone there are no keys, and no box for all rows: the dialog about many needs more than ten.
    assert seen | ({"delete/ask", "keys"} if "has_touch" in view else set()) == DIALOGS


def test_one_goes_to_a_queue_and_a_message_by_keyboard(page, client) -> None:
    sent = client.produce("orders.created", "x")
    client.produce("orders.refund", "x")
    page.goto("/")
    page.get_by_role("link", name="orders.created").focus()
    keyboard(page, "/ Escape")
    expect(page.get_by_role("link", name="orders.created")).to_be_focused()
    keyboard(page, "/")
    page.keyboard.type("orders.re")
    expect(page.locator("#jump-names option")).to_have_count(1)
    keyboard(page, "Enter")
    expect(page.locator("h1")).to_have_text("orders.refund")
    keyboard(page, "/")
    page.keyboard.type(sent.id)
    keyboard(page, "Enter")
    expect(page.locator("h1")).to_have_text(f"Message {sent.sequence:,}")
    keyboard(page, "g d")
    expect(page.locator("h1")).to_have_text("There are no dead letters")
