"""The shop's admin panel: its facts, addresses, grids, forms, reports, and what it says to bad input."""

import functools
import itertools
import re

import pytest
from lxml import html
from werkzeug.test import Client

from dynaweb_lite.accessibility import HtmlReader, page_lines
from dynaweb_lite.sites.server import SESSION_COOKIE, Sessions
from dynaweb_lite.sites.webarena.shopping_admin.app import make_app
from dynaweb_lite.sites.webarena.shopping_admin.content import make_database
from dynaweb_lite.sites.webarena.shopping_admin.orders import read_region
from dynaweb_lite.sites.webarena.shopping_admin.pages import parse_amount, parse_date, short_date
from dynaweb_lite.sites.webarena.shopping_admin.tasks import TEMPLATES

HOST = "http://shop-admin.test"
SESSIONS = Sessions("webarena", "shopping_admin", 0)
APP = make_app(SESSIONS.database)
NUMBERS = itertools.count()


class Panel:
    """The client of a session of its own; pages come back parsed, redirects followed."""

    def __init__(self):
        self.client = Client(APP)
        self.session = f"panel-{next(NUMBERS)}"
        self.client.set_cookie(SESSION_COOKIE, self.session, domain="shop-admin.test")

    def get(self, path, status=200):
        return self._page(self.client.get(path, base_url=HOST, follow_redirects=True), status)

    def post(self, path, status=200, **form):
        return self._page(self.client.post(path, base_url=HOST, data=form, follow_redirects=True), status)

    def send(self, path, status=200, /, **changes):
        """Send the page's form as it stands, but for `changes`; None unchecks."""
        form = next(f for f in self.get(path).forms if f.get("method") == "post" and f.get("action") is None)
        fields = dict(form.form_values()) | changes
        return self.post(path, status, **{k: v for k, v in fields.items() if v is not None})

    def _page(self, response, status):
        assert response.status_code == status, response.text[-400:]
        page = html.document_fromstring(response.text)
        page.address = response.request.url.removeprefix(HOST)
        return page


@pytest.fixture
def panel():
    panel = Panel()
    yield panel
    SESSIONS.drop(panel.session)


def text(page, css="main"):
    return " ".join(page.cssselect(css)[0].text_content().split())


def column(page, number):
    return [" ".join(row[number - 1].text_content().split()) for row in page.cssselect("table tr")[1:]]


def value(page, name):
    return page.xpath("//*[@name=$name]", name=name)[0].value


@functools.cache
def database(seed):
    return make_database(seed)


def rows(sql, *values, seed=0):
    return [tuple(row) for row in database(seed).execute(sql, values)]


# content


def test_seed_zero_holds_the_facts_of_webarenas_tasks():
    newest = "SELECT total FROM orders WHERE status {} ORDER BY created DESC LIMIT {}"
    spans = (("= 'complete'", 2), ("= 'complete'", 5), ("= 'pending'", 5), ("<> 'canceled'", 5), ("= 'canceled'", 4))
    sums = [round(sum(total for (total,) in rows(newest.format(*span))), 2) for span in spans]
    assert sums == [182.4, 555.2, 885.4, 778.2, 615.45]
    assert rows("SELECT count(*) FROM review GROUP BY status") == [(346,), (5,)]
    for word, count in (("disappointed", 6), ("satisfied", 2), ("decent", 2), ("best", 2), ("not useful", 0)):
        assert rows("SELECT count(*) FROM review WHERE title || detail LIKE ?", f"%{word}%") == [(count,)], word
    items = "SELECT (SELECT sum(qty) FROM item WHERE order_id = orders.id) FROM orders ORDER BY created DESC LIMIT 7"
    sold = [n for (n,) in rows(items)]
    assert [sum(sold[:n]) for n in (2, 4, 5, 7)] == [9, 16, 18, 25]
    assert rows("SELECT total FROM invoice WHERE id < 3") == [(36.39,), (39.64,)]


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_totals_add_up_and_ranks_are_clear(seed):
    items = "(SELECT sum(price * qty) FROM item WHERE order_id = orders.id)"
    for order in rows(f"SELECT {items}, subtotal, shipping, tax, discount, total FROM orders", seed=seed):
        of_items, subtotal, shipping, tax, discount, total = order
        assert of_items == pytest.approx(subtotal)
        assert total == pytest.approx(subtotal + shipping + tax - discount, abs=0.006)
    counts = rows(
        "SELECT count(*) AS n FROM orders WHERE status = 'complete' GROUP BY name ORDER BY n DESC LIMIT 6", seed=seed
    )
    assert len(set(counts)) == 6
    assert len(database(seed).serialize()) < 500_000


def test_content_is_a_function_of_the_seed():
    dumps = [list(make_database(seed).iterdump()) for seed in (1, 1, 2)]
    assert dumps[0] == dumps[1] != dumps[2]
    assert not set(rows("SELECT name FROM product")) & set(rows("SELECT name FROM product", seed=1))


def test_templates_make_enough_instances_of_every_kind():
    assert {t.kind for t in TEMPLATES} == {"information", "navigation", "change"}
    assert sum(t.held_out for t in TEMPLATES) == 2


# addresses


def test_addresses_with_and_without_a_final_slash(panel):
    assert panel.get("/").address == "/admin/dashboard"
    for path in (
        "/admin",
        "/admin/sales/order",
        "/admin/sales/order/view/order_id/299",
        "/admin/cms/page/edit/page_id/2",
    ):
        panel.get(path)
        panel.get(path + "/")


@pytest.mark.parametrize("path", [
    "/admin/nothing/", "/admin/section/nothing/", "/admin/sales/order/view/order_id/999/", "/nothing.html",
    "/admin/catalog/product/edit/id/2046/", "/admin/sales/order/address/address_id/9999/",
    f"/admin/customer/index/edit/id/{10**30}/", "/admin/cms/page/edit/page_id/99/",
    "/admin/admin/system_design_theme/edit/id/9/", "/admin/catalog/product/configure/id/1/",
])  # fmt: skip
def test_what_is_not_there_is_a_page_too(panel, path):
    assert "404 Error" in text(panel.get(path, 404))


def test_a_form_address_opened_by_hand(panel):
    assert "404 Error" in text(panel.get("/admin/sales/order/cancel/order_id/302/", 405))


SPAN = "?from=1/1/22&to=5/31/23&p=2"
PATHS = [
    "dashboard", "section/reports/", "sales/order/?search=e&status=complete&p=2", "sales/invoice/?p=2",
    "sales/shipment/?p=2", "catalog/product/?search=e&type=simple&p=2", "customer/index/?p=2",
    "review/product/index/?search=e&status=1&p=2", "review/product/pending/", "sales_rule/promo_quote/",
    "search/term/report/?p=2", "reports/report_review/product/?p=2", "catalog/product/edit/id/110/",
    "sales/order/?filters=open", "review/product/index/?filters=open", "sales/order/view/order_id/299/",
    "reports/report_sales/sales/" + SPAN, "reports/report_sales/bestsellers/" + SPAN,
    "reports/report_customer/orders/" + SPAN, "sales/invoice/view/invoice_id/2/",
]  # fmt: skip


def test_pages_stay_within_sixty_lines(panel):
    for path in PATHS:
        assert len(page_lines(HtmlReader(panel.get("/admin/" + path)).tree())) <= 60, path


def test_an_order_with_notes_and_a_message_stays_within_sixty_lines(panel):
    for n in range(4):
        page = panel.post("/admin/sales/order/addComment/order_id/299/", **{"history[comment]": f"note {n}"})
    assert len(page_lines(HtmlReader(page).tree())) <= 60
    assert [text(note, "*") for note in page.cssselect(".note-list-comment")] == ["note 3", "note 2"]


# grids


def test_search_filter_and_clear(panel):
    page = panel.get("/admin/sales/order/?search=samantha+jones&status=canceled")
    assert "9 records found" in text(page) and set(column(page, 3)) == {"Samantha Jones"}
    assert text(page, ".admin__data-grid-filters-current") == "Active filters: Status: Canceled"
    assert "308 records found" in text(panel.get(page.xpath("//a[.='Clear all']/@href")[0]))


def test_a_keyword_is_no_filter(panel):
    assert not panel.get("/admin/sales/order/?search=canceled").cssselect(".admin__data-grid-filters-current")


def test_ranges_of_dates_and_numbers(panel):
    page = panel.get("/admin/sales/order/?created_at_from=5/28/2023&created_at_to=2023-05-31&sort=created_at&dir=asc")
    assert column(page, 2) == ["May 28, 2023", "May 30, 2023", "May 31, 2023"]
    assert column(panel.get("/admin/catalog/product/?qty_from=1&qty_to=3"), 5) == ["3", "2"]


def test_sorting_turns_round(panel):
    path = "/admin/sales/order/"
    for expected in (sorted, lambda rows: sorted(rows, reverse=True)):
        path = panel.get(path).xpath("//th/a[starts-with(., 'Grand Total')]/@href")[0]
        totals = [float(t.strip("$").replace(",", "")) for t in column(panel.get(path), 4)]
        assert totals == expected(totals) and len(totals) == 7


def test_pages_and_page_size(panel):
    first = panel.get("/admin/customer/index/")
    second = panel.get(first.xpath("//a[.='Next page']/@href")[0])
    assert not set(column(first, 2)) & set(column(second, 2)) and "Page 2 of 12" in text(second)
    small = panel.get(first.xpath("//a[.='3 per page']/@href")[0])
    assert column(small, 2) == column(first, 2)[:3] and "Page 1 of 24" in text(small)


@pytest.mark.parametrize("query, message", [
    ("created_at_from=31/31/2023", "'31/31/2023' is no date"), ("grand_total_to=much", "'much' is no number"),
    ("status=lost", "Status has no 'lost'"),
])  # fmt: skip
def test_filters_that_cannot_be_read_are_named_and_left_out(panel, query, message):
    page = panel.get(f"/admin/sales/order/?{query}")
    assert message in text(page) and "308 records found" in text(page)


def test_empty_and_odd_queries(panel):
    assert "We couldn't find any records." in text(panel.get("/admin/sales/order/?status=fraud"))
    for query in ("p=99999", "p=-1", "limit=9000", "sort=total;DROP", "search=%25%27%22", "p=x"):
        panel.get(f"/admin/sales/order/?{query}")
    assert "0 records found" in text(panel.get("/admin/catalog/product/?search=%25"))


def test_page_text_is_escaped(panel):
    panel.send("/admin/cms/page/edit/page_id/2/", title="<b>bold</b>")
    page = panel.get("/admin/cms/page/")
    assert "<b>bold</b>" in text(page) and not page.cssselect("td b")


# orders


def status_of(panel, order_id):
    return text(panel.get(f"/admin/sales/order/view/order_id/{order_id}/"), "#order_status")


def test_cancel_hold_and_unhold(panel):
    panel.post("/admin/sales/order/hold/order_id/302/")
    assert status_of(panel, 302) == "On Hold"
    assert "cannot be changed" in text(panel.post("/admin/sales/order/cancel/order_id/302/"))
    panel.post("/admin/sales/order/unhold/order_id/302/")
    assert status_of(panel, 302) == "Pending"
    assert "You canceled the order." in text(panel.post("/admin/sales/order/cancel/order_id/302/"))
    assert status_of(panel, 302) == "Canceled" and "You canceled" not in text(panel.get("/admin/dashboard"))


def test_a_shipment_with_its_tracking_number(panel):
    path = "/admin/admin/order_shipment/new/order_id/307/"
    assert "Please choose a carrier." in text(panel.post(path, 400, carrier="Pigeon", number="1"))
    assert status_of(panel, 307) == "Pending"
    page = panel.send(path, carrier="DHL", number="24353446464")
    assert text(page, "#order_status") == "Processing"
    history = panel.get("/admin/sales/order/commentsHistory/order_id/307/active_tab/order_shipments/")
    assert "Tracking number 24353446464 for DHL assigned" in text(history)
    assert "shipped already" in text(panel.get(path))
    shipment = page.xpath("//a[starts-with(., 'Shipment #')]/@href")[0]
    assert "Please enter a tracking number." in text(panel.send(shipment, 400, number=" "))
    assert column(panel.send(shipment, number="77"), 2) == ["24353446464", "77"]


def test_comments(panel):
    path = "/admin/sales/order/addComment/order_id/302/"
    assert "The comment is missing." in text(panel.post(path, **{"history[comment]": "  "}))
    page = panel.post(path, **{"history[comment]": "sorry", "history[is_customer_notified]": "1"})
    assert text(page, "#order_history_block .note-list-comment") == "sorry" and "customer notified" in text(page)


def test_addresses_take_two_letters_for_a_state(panel):
    path = "/admin/sales/order/address/address_id/250/"
    page = panel.send(path, street="654 Elm Drive", region="FL")
    assert page.address == "/admin/sales/order/view/order_id/125/" and "654 Elm Drive" in text(page)
    assert value(panel.get(path), "region") == "Florida"
    wrong = panel.send(path, 400, region="Flo", city="")
    assert "'Flo' is no state" in text(wrong) and "City is a required field." in text(wrong)
    assert (read_region("new york"), read_region("NJ"), read_region("")) == ("New York", "New Jersey", None)


# products

PRODUCT = "/admin/catalog/product/edit/id/{}/"


def test_a_product_is_saved(panel):
    changes = {"product[price]": "$27", "product[quantity_and_stock_status][qty]": "5", "product[sale]": "0"}
    page = panel.send(PRODUCT.format(1481), **changes, **{"product[status]": None})
    assert "You saved the product." in text(page)
    found = {
        key: value(page, f"product[{key}]") for key in ("price", "quantity_and_stock_status][qty", "special_price")
    }
    assert list(found.values()) == ["27.00", "5", ""]
    boxes = {key: page.xpath("//input[@name=$n]", n=f"product[{key}]")[0] for key in ("status", "sale")}
    assert [(b.get("value"), b.checked) for b in boxes.values()] == [("2", False), ("1", True)]
    again = panel.send(PRODUCT.format(1481), **{"product[status]": "2"})
    assert again.xpath("//input[@name='product[status]']")[0].get("value") == "1"


@pytest.mark.parametrize("field, typed, message", [
    ("product[price]", "cheap", "Price: 'cheap' is no amount"), ("product[price]", "-1", "Price: '-1' is no amount"),
    ("product[name]", " ", "Product Name is a required field."), ("product[sku]", "MH01", "The SKU belongs to another"),
    ("product[quantity_and_stock_status][qty]", "1.5", "Quantity: '1.5' is no whole number."),
    ("product[special_price]", "half", "Special Price: 'half'"),
])  # fmt: skip
def test_bad_product_fields_come_back_with_what_was_typed(panel, field, typed, message):
    page = panel.send(PRODUCT.format(1481), 400, **{field: typed})
    assert message in text(page) and value(page, field) == typed.strip()
    assert value(panel.get(PRODUCT.format(1481)), "product[price]") == "32.00"


def test_configurations_are_added_once(panel):
    path = "/admin/catalog/product/configure/id/110/"
    page = panel.send(path, sizes="s, M", colors="Blue", qty="7")
    assert "2 configurations added." in text(page)
    variants = text(page, '[data-index="configurable"]')
    assert "Frankie Sweatshirt-S-Blue, $60.00, 7 in stock" in variants and "Sweatshirt-M-Blue" in variants
    assert "0 configurations added." in text(panel.send(path, sizes="M", colors="blue", qty="1"))
    wrong = text(panel.send(path, 400, sizes="huge", colors="", qty="x"))
    assert all(f"{label}: please give" in wrong for label in ("Sizes", "Colors", "Quantity"))


def test_a_new_product(panel):
    path = "/admin/catalog/product/new/"
    assert "Product Name is a required field." in text(panel.send(path, 400))
    form = {"product[name]": "Sun Hat", "product[sku]": "24-H1", "product[price]": "9.5",
            "product[quantity_and_stock_status][qty]": "3", "product[category]": "Gear"}  # fmt: skip
    page = panel.send(path, **form)
    assert page.address == PRODUCT.format(1967) and value(page, "product[price]") == "9.50"
    assert "$9.50" in text(panel.get("/sun-hat.html"))


def test_the_store_shows_enabled_products_and_their_approved_reviews(panel):
    page = panel.get("/antonia-racer-tank.html")
    assert text(page, ".data.item.content").startswith("Made of") and "regular rotation" in text(page)
    panel.send(PRODUCT.format(1796), **{"product[status]": None})
    panel.get("/antonia-racer-tank.html", 404)
    assert "nobody answered my mail" not in text(panel.get("/bruno-compete-hoodie.html")), "a pending review"


# reviews and other records


def test_reviews_are_approved_changed_and_deleted(panel):
    path = "/admin/review/product/edit/id/352/"
    page = panel.send(path, status_id="1", stars="4")
    assert value(page, "status_id") == "1" and "Rating: 4 of 5 stars" in text(page)
    assert "Nickname is a required field." in text(panel.send(path, 400, nickname=""))
    panel.send(path, status_id="17")
    assert value(panel.get(path), "status_id") == "1"
    assert panel.post("/admin/review/product/delete/id/351/").address == "/admin/review/product/pending/"
    assert panel.post("/admin/review/product/delete/id/352/").address == "/admin/review/product/index/"
    assert "Rating isn't Available" in text(panel.get("/admin/review/product/edit/id/351", 404))
    panel.post("/admin/review/product/delete/id/351/", 404)


def test_content_pages(panel):
    path = "/admin/cms/page/edit/page_id/5/"
    assert value(panel.send(path, title="Secret", is_active=None), "title") == "Secret"
    assert column(panel.get("/admin/cms/page/?is_active=0"), 2) == ["Secret"]
    assert "Page Title is a required field." in text(panel.send(path, 400, title=""))


def test_cart_price_rules(panel):
    new = {"name": "Spring sale", "simple_action": "by_percent", "discount_amount": "20", "group[General]": "1"}
    page = panel.send("/admin/sales_rule/promo_quote/new/", **new)
    assert page.address == "/admin/sales_rule/promo_quote/" and "Spring sale" in text(page)
    path = "/admin/sales_rule/promo_quote/edit/id/5/"
    assert value(panel.get(path), "discount_amount") == "20"
    wrong = panel.send(path, 400, discount_amount="120", **{"group[General]": None})
    assert "at most 100" in text(wrong) and "Customer Groups is a required field." in text(wrong)
    assert "Spring sale" not in text(panel.post("/admin/sales_rule/promo_quote/delete/id/5/"))


def test_customers(panel):
    path = "/admin/customer/index/edit/id/7/"
    assert "Samantha Jones" in text(panel.get(path)) and "9 canceled orders" in text(panel.get(path))
    assert value(panel.send(path, group_name="Retailer"), "group_name") == "Retailer"
    wrong = text(panel.send(path, 400, email="nobody", name="", group_name="Club"))
    assert "'nobody' is no e-mail" in wrong and "Name is a required field." in wrong and "choose a group" in wrong


# reports


def test_a_report_shows_its_days_back_and_adds_up(panel):
    path = "/admin/reports/report_sales/sales/?from=02/01/2023&to=Feb+28,+2023&period_type=month&status=complete"
    page = panel.get(path)
    assert [page.get_element_by_id(f"sales_report_{side}").value for side in ("from", "to")] == ["2/1/23", "2/28/23"]
    (count, items, total), = rows(
        "SELECT count(*), sum((SELECT sum(qty) FROM item WHERE order_id = orders.id)), sum(total) FROM orders "
        "WHERE created LIKE '2023-02%' AND status = 'complete'"
    )  # fmt: skip
    assert [column(page, n) for n in (1, 2, 3, 4)] == [["2/2023"], [str(count)], [str(items)], [f"${total:,.2f}"]]
    assert f"Total: Orders {count}, Sales Items {items}" in text(page)


@pytest.mark.parametrize("query, message", [
    ("from=&to=", "Please give both days"), ("from=1/1/2023", "Please give both days"),
    ("from=13/13/2023&to=1/1/2023", "'13/13/2023' is no date"),
    ("from=2/1/2023&to=1/1/2023", "From must not be after To."),
])  # fmt: skip
def test_spans_that_are_none(panel, query, message):
    page = panel.get(f"/admin/reports/report_sales/shipping/?{query}", 400)
    assert message in text(page) and not page.cssselect("table")


def test_best_sellers_by_month_and_year(panel):
    path = "/admin/reports/report_sales/bestsellers/?from=1/1/2023&to=5/31/2023&period_type={}"
    assert column(panel.get(path.format("year")), 2)[:2] == ["Sprite Yoga Strap 6 foot", "Overnight Duffle"]
    by_month = panel.get(path.format("month"))
    assert column(by_month, 1)[:6] == ["1/2023"] * 5 + ["2/2023"] and column(by_month, 2)[0] == "Impulse Duffle"
    assert "Page 2 of 4" in text(panel.get(by_month.xpath("//a[.='Next page']/@href")[0]))


@pytest.mark.parametrize("path", [
    "report_sales/tax", "report_sales/refunded", "report_sales/coupons", "report_product/viewed",
    "report_customer/orders",
])  # fmt: skip
def test_every_report_has_rows_and_says_when_it_has_none(panel, path):
    assert column(panel.get(f"/admin/reports/{path}/?from=1/1/2022&to=12/31/2023&period_type=year"), 2)
    assert "We couldn't find any records." in text(panel.get(f"/admin/reports/{path}/?from=1/1/1999&to=1/2/1999"))


def test_reading_dates_and_amounts():
    written = ("5/31/2023", "05/31/23", "2023-05-31", "May 31, 2023")
    assert {parse_date(text) for text in written} == {"2023-05-31"}
    assert parse_date("2/30/2023") is None and short_date("2022-08-05") == "8/5/22"
    assert [parse_amount(t) for t in ("$1,234.50", "7", "7.123", "", "-3")] == [1234.5, 7.0, None, None, None]


def test_the_dashboard_leads_to_the_newest_orders(panel):
    page = panel.get("/admin/dashboard")
    link = page.xpath("//h2[.='Last Orders']/following-sibling::ol//a")[0]
    assert re.match(r"#000000299 Sarah Miller, 5 items", link.text)
    assert "#000000299" in text(panel.get(link.get("href")))
