"""The replica of WebArena's shop: addresses, forms, lists in pages, the account, checkout, the REST endpoints."""

import functools
import re
import sqlite3
from contextlib import contextmanager
from urllib.parse import urljoin

import pytest
from lxml import html
from werkzeug.test import Client

from dynaweb_lite.accessibility import HtmlReader, page_lines
from dynaweb_lite.sites.webarena.shopping.app import make_app
from dynaweb_lite.sites.webarena.shopping.catalog import ON_PAGE, price_range, words
from dynaweb_lite.sites.webarena.shopping.content import make_database

CLARKS, CANDLES = "/clarks-men-s-tunsil-lane-oxford.html", "/video-games/playstation-4/accessories.html"
ADMIN = {"username": "admin", "password": "admin1234"}


@functools.cache
def seeded():
    return make_database(0).serialize()


class Shop:
    """A client of the shop with its database at hand."""

    def __init__(self):
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.deserialize(seeded())
        self.db.row_factory = sqlite3.Row

        @contextmanager
        def database():
            with self.db:
                yield self.db

        self.client = Client(make_app(database))

    def get(self, url):
        return self.client.get(url, follow_redirects=True)

    def post(self, url, **fields):
        return self.client.post(url, data=fields, follow_redirects=True)

    def row(self, sql, *values):
        return self.db.execute(sql, values).fetchone()


@pytest.fixture
def shop():
    return Shop()


def names(response):
    return [a.text for a in html.document_fromstring(response.text).xpath("//a[@class='product-item-link']")]


def text(response, css):
    (element,) = html.document_fromstring(response.text).cssselect(css)
    return " ".join(element.text_content().split())


def test_content_is_a_function_of_the_seed_small_and_without_webarena_elsewhere():
    first, again, other = (make_database(seed) for seed in (0, 0, 1))
    assert first.serialize() == again.serialize() != other.serialize()
    assert max(len(db.serialize()) for db in (first, other)) < 500_000
    for word in ("Emma", "Nike", "EYZUTAK", "San Mateo"):
        assert word in "\n".join(first.iterdump()) and word not in "\n".join(other.iterdump())


@pytest.mark.parametrize("seed", [0, 3])
def test_every_order_has_goods_of_the_shop_at_their_price(seed):
    db = make_database(seed)
    wrong = "SELECT count(*) FROM order_item i LEFT JOIN product p ON p.id = product_id AND p.sku = i.sku"
    assert db.execute(f"{wrong} WHERE p.id IS NULL OR p.cents != i.cents").fetchone()[0] == 0
    assert db.execute("SELECT count(*) FROM bill").fetchone() == db.execute("SELECT count(*) FROM orders").fetchone()


def test_pages_reached_by_links_exist_and_are_short():
    shop, seen, waiting = Shop(), {}, ["/home-kitchen/furniture.html?p=2", "/sales/order/view/order_id/161/", "/"]
    while waiting and len(seen) < 60:
        url = waiting.pop(0)
        page = shop.get(url)
        document = html.document_fromstring(page.text)
        seen[url] = page.status_code, len(page_lines(HtmlReader(document).tree()))
        found = [urljoin(url, a.get("href")).split("#")[0] for a in document.iter("a")]
        waiting += [u for u in dict.fromkeys(found) if u not in seen and u not in waiting]
    assert {status for status, _ in seen.values()} == {200}
    assert max(lines for _, lines in seen.values()) <= 60


@pytest.mark.parametrize(
    "url",
    [
        "/nothing", "/nothing.html", "/video-games/nothing.html", "/sales/order/view/order_id/999/",
        "/review/product/list/id/0/", "/review/product/list/id/99999999999999999999/", "/customer/address/edit/id/1/",
        "/checkout/onepage/success/",
    ],
)  # fmt: skip
def test_what_is_missing_gets_a_page_that_says_so(shop, url):
    response = shop.get(url)
    assert response.status_code == 404 and "was not found" in response.text and "One Stop Market" in response.text


def test_categories_have_three_levels_and_hold_what_is_below(shop):
    totals = [
        int(re.search(r"of (\d+)<", shop.get(f"/{path}.html").text)[1])
        for path in ("video-games", "video-games/playstation-4", "video-games/playstation-4/accessories")
    ]
    assert totals == sorted(totals, reverse=True) and totals[-1] > ON_PAGE
    page = shop.get("/video-games/playstation-4/accessories.html").text
    assert [f'href="/{p}.html"' in page for p in ("video-games", "video-games/playstation-4")] == [True, True]


def test_lists_are_sorted_both_ways_and_cut_into_pages(shop):
    def listed(query, pages=(1, 2)):
        return [n for p in pages for n in names(shop.get(f"{CANDLES}?{query}&p={p}"))]

    by_price = listed("product_list_order=price")
    cents = [shop.row("SELECT cents FROM product WHERE name = ?", name)[0] for name in by_price]
    assert cents == sorted(cents) and len(set(by_price)) == len(by_price) > ON_PAGE
    assert by_price[::-1] == listed("product_list_order=price&product_list_dir=desc")
    by_name = listed("product_list_order=name")
    assert by_name == sorted(by_name, key=str.lower)
    assert listed("product_list_order=nonsense") == listed("") != by_name
    assert names(shop.get(f"{CANDLES}?p=2")) == names(shop.get(f"{CANDLES}?p=99"))
    assert names(shop.get(f"{CANDLES}?p=x")) == names(shop.get(CANDLES))


def test_a_price_filter_leads_to_magentos_address_or_says_what_is_wrong(shop):
    sent = shop.client.get(f"{CANDLES}?price_from=&price_to=25")
    assert sent.status_code == 302 and sent.headers["Location"] == f"{CANDLES}?price=0-25"
    page = shop.get(f"{CANDLES}?price=0-25")
    assert "Price: $0.00 - $25.00" in page.text and names(page)
    assert all(shop.row("SELECT cents FROM product WHERE name = ?", n)[0] <= 2500 for n in names(page))
    for low, high in (("a", "5"), ("", ""), ("-3", "5"), ("1" * 400, "")):
        page = shop.get(f"{CANDLES}?price_from={low}&price_to={high}")
        assert "plain numbers" in page.text and len(names(page)) == ON_PAGE
    assert "must not be above" in shop.get(f"{CANDLES}?price_from=9&price_to=5").text
    assert "find products matching" in shop.get(f"{CANDLES}?price=9000-9001").text


@pytest.mark.parametrize(
    "parameter, cents",
    [("0-25", (0, 2500)), ("0-46.99", (0, 4699)), ("25-", (2500, None)), ("-25", (0, 2500)), ("", (0, None)),
     ("-", (0, None)), ("cheap", (0, None)), ("1-2-3", (0, None))],
)  # fmt: skip
def test_the_price_in_an_address(parameter, cents):
    assert price_range(parameter) == cents


def test_search_wants_all_words_then_any_and_knows_plurals(shop):
    assert words("Chairs, USB 3.5mm") == ["chair", "usb", "3", "5mm"]
    found = names(shop.get("/catalogsearch/result/?q=teeth+grinding+mouth+guards"))
    assert len(found) == 6 and all("outh Guard" in n for n in found)
    assert names(shop.get("/catalogsearch/result/?q=green+tea+bag+zebra"))[0].startswith("Green Tea")
    for query, says in (("zebra", "returned no results"), ("", "Please enter a word"), ("%25", "returned no results")):
        page = shop.get(f"/catalogsearch/result/?q={query}")
        assert says in page.text and not names(page)
    assert "&lt;b&gt;" in shop.get("/catalogsearch/result/?q=<b>").text


def test_sorting_a_search_goes_to_index_and_descends_unless_told(shop):
    document = html.document_fromstring(shop.get("/catalogsearch/result/?q=chairs").text)
    (sorter,) = document.xpath("//form[.//select]")
    assert sorter.get("action") == "/catalogsearch/result/index/"
    assert [i.get("value") for i in sorter.xpath(".//input[@name='q']")] == ["chairs"]
    address = "/catalogsearch/result/index/?q=chairs&product_list_order=price"
    assert names(shop.get(address)) != names(shop.get(f"{address}&product_list_dir=asc"))
    assert (
        "product_list_dir=asc"
        in html.document_fromstring(shop.get(address).text).xpath("//a[text()='Set Ascending Direction']/@href")[0]
    )


def test_options_must_be_chosen_and_quantities_be_numbers(shop):
    product = shop.row("SELECT * FROM product WHERE url_key = ?", CLARKS[1:-5])
    add = f"/checkout/cart/add/product/{product['id']}/"
    assert "need to choose options" in shop.post(add, qty="1").text
    assert "need to choose options" in shop.post(add, **{"qty": "1", "options[Size]": "99"}).text
    for quantity in ("0", "-1", "two", "1.5", "9" * 5000, ""):
        assert "quantity from 1 to 1000" in shop.post(add, **{"qty": quantity, "options[Size]": "9"}).text
    assert "no items" in shop.get("/checkout/cart/").text
    for _ in range(2):
        assert "You added" in shop.post(add, **{"qty": "2", "options[Size]": "9"}).text
    cart = shop.get("/checkout/cart/")
    assert "Size: 9" in cart.text and "$246.68" in cart.text and "My Cart (4)" in cart.text
    assert shop.post("/checkout/cart/add/product/0/", qty="1").status_code == 404


def test_what_is_sold_out_cannot_be_bought(shop):
    product = shop.row("SELECT * FROM product WHERE NOT in_stock AND options = '{}'")
    page = shop.get(f"/{product['url_key']}.html").text
    assert "OUT OF STOCK" in page and "Add to Cart" not in page
    assert "is out of stock" in shop.post(f"/checkout/cart/add/product/{product['id']}/").text
    shop.post("/wishlist/index/add/", product=product["id"])
    wish = shop.row("SELECT max(id) FROM wish")[0]
    assert "out of stock" in shop.post(f"/wishlist/index/cart/item/{wish}/").text
    assert shop.row("SELECT count(*) FROM cart")[0] == 0


def fill_cart(shop, pieces=1, condition="in_stock AND options = '{}'"):
    product = shop.row(f"SELECT * FROM product WHERE {condition}")
    shop.post(f"/checkout/cart/add/product/{product['id']}/", qty=str(pieces))
    return product


def test_the_cart_is_changed_and_emptied(shop):
    product = fill_cart(shop, 2)
    item = shop.row("SELECT id FROM cart")[0]
    assert "from 1 to 1000" in shop.post("/checkout/cart/updatePost/", **{f"cart[{item}][qty]": "x"}).text
    shop.post("/checkout/cart/updatePost/", **{f"cart[{item}][qty]": "7"})
    total = f"${7 * (product['cents'] + 500) / 100:,.2f}"
    assert total in shop.get("/checkout/cart/").text
    assert "no items" in shop.post(f"/checkout/cart/delete/id/{item}/").text


def test_checkout_makes_an_order_that_account_and_rest_show(shop):
    assert "no items" in shop.get("/checkout/").text
    assert "no items" in shop.get("/checkout/payment/").text
    product = fill_cart(shop, 3)
    assert "101 S San Mateo Dr" in shop.get("/checkout/").text
    assert shop.post("/checkout/shipping/", address="77").status_code == 404
    assert "Checkout: Shipping" in shop.get("/checkout/payment/").text
    assert "Place Order" in shop.post("/checkout/shipping/", address="26").text
    assert "000000190" in shop.post("/checkout/payment/").text
    order = shop.get("/sales/order/view/order_id/190/")
    assert product["sku"] in text(order, ".order-details-items.ordered") and "Pending" in order.text
    assert "no items" in shop.post("/checkout/payment/").text
    assert names_of_orders(shop.get("/sales/order/history/"))[0] == "000000190"


def names_of_orders(response):
    return html.document_fromstring(response.text).xpath("//table[@id='my-orders-table']//a/text()")


def test_the_history_has_every_order_once_newest_first(shop):
    pages = [names_of_orders(shop.get(f"/sales/order/history/?p={p}")) for p in range(1, 6)]
    numbers = [number for page in pages for number in page]
    assert len(set(numbers)) == len(numbers) == 37 and numbers[0] == "000000170" and numbers[-1] == "000000142"


def test_the_history_agrees_with_what_webarena_says_of_it(shop):
    def spent(status, period):
        sql = "SELECT sum(total), count(*) FROM bill WHERE status = ? AND created LIKE ?"
        cents, count = shop.row(sql, status, period)
        return (cents or 0) / 100, count

    assert spent("Canceled", "2022-%") == (3053.97, 5) and spent("Canceled", "2023-02-%") == (406.53, 2)
    assert spent("Complete", "2023-01-%") == (572.88, 2) and spent("Complete", "2022-07-%") == (40.16, 1)
    cents, count = shop.row("SELECT sum(total), count(*) FROM bill WHERE status='Complete' AND created > '2023-02-12'")
    assert (cents, count) == (84549, 3)


def test_reordering_fills_the_cart_with_options(shop):
    page = shop.post("/sales/order/reorder/order_id/161/")
    assert "Color: Green-vines" in page.text and shop.row("SELECT count(*) FROM cart")[0] == 5
    assert shop.post("/sales/order/reorder/order_id/5/").status_code == 404


def test_wishes_come_go_and_turn_into_purchases(shop):
    product = shop.row("SELECT * FROM product WHERE url_key = ?", CLARKS[1:-5])
    for _ in range(2):
        page = shop.post("/wishlist/index/add/", product=product["id"])
    assert text(page, ".products-grid.wishlist").startswith(product["name"]) and "3 Items" in page.text
    wish = shop.row("SELECT id FROM wish WHERE product_id = ?", product["id"])[0]
    assert "need to choose options" in shop.post(f"/wishlist/index/cart/item/{wish}/").text
    assert "has been removed" in shop.post(f"/wishlist/index/remove/item/{wish}/").text
    for (wish,) in shop.db.execute("SELECT id FROM wish").fetchall():
        page = shop.post(f"/wishlist/index/cart/item/{wish}/")
    assert "no items in your wish list" in page.text and shop.row("SELECT count(*) FROM cart")[0] == 2
    assert shop.post("/wishlist/index/add/", product="x").status_code == 404


def test_a_review_must_be_whole_and_waits_for_approval(shop):
    product = shop.row("SELECT id FROM product WHERE sku = 'B00J8RZL7I'")[0]
    url = f"/review/product/post/id/{product}/"
    page = shop.post(url, nickname="Emma", detail=" ")
    for problem in ("Summary is a required field", "Review is a required field", "select one of the ratings"):
        assert problem in page.text
    assert 'value="Emma"' in page.text and shop.row("SELECT count(*) FROM review WHERE is_own")[0] == 0
    before = shop.get(f"/review/product/list/id/{product}/").text.count("Review by")
    assert (
        "submitted your review"
        in shop.post(url, **{"ratings[4]": "19", "nickname": "Emma", "title": "<i>", "detail": "Fine"}).text
    )
    assert shop.get(f"/review/product/list/id/{product}/").text.count("Review by") == before
    own = shop.get("/review/customer/").text
    assert "80% (4 stars)" in own and "waiting for approval" in own and "&lt;i&gt;" in own


ADDRESS = {
    "firstname": "Emma", "lastname": "Lopez", "telephone": "1", "street_1": "654 Aspen Road", "street_2": "House #3",
    "city": "Boston", "region": "ma", "postcode": "02110", "country_id": "United States",
}  # fmt: skip


def test_addresses_are_checked_saved_and_deleted(shop):
    url = "/customer/address/formPost/id/26/"
    for field, value, says in (
        ("region", "Ontario", "a state of the United States"), ("postcode", "0211", "five digits"),
        ("city", " ", "City is a required field"), ("country_id", "France", "select a country"),
    ):  # fmt: skip
        page = shop.post(url, **{**ADDRESS, field: value})
        assert says in page.text and 'value="654 Aspen Road"' in page.text
    book = shop.post(url, **ADDRESS)
    for kind in ("billing", "shipping"):
        box = text(book, f".box.box-address-{kind} > .box-content")
        assert "654 Aspen Road" in box and "House #3" in box and "Boston, Massachusetts, 02110" in box
    shop.post("/customer/address/formPost/", **{**ADDRESS, "city": "Salem"})
    new = shop.row("SELECT * FROM address WHERE city = 'Salem'")
    assert not (new["is_billing"] or new["is_shipping"]) and "Salem" in shop.get("/customer/address/").text
    shop.post(f"/customer/address/formPost/id/{new['id']}/", **{**ADDRESS, "city": "Salem", "default_shipping": "1"})
    assert "cannot be deleted" in shop.post(f"/customer/address/delete/id/{new['id']}/").text
    shop.post("/customer/address/formPost/id/26/", **{**ADDRESS, "default_shipping": "1"})
    assert "Salem" not in shop.post(f"/customer/address/delete/id/{new['id']}/").text
    assert shop.row("SELECT sum(is_billing), sum(is_shipping), count(*) FROM address")[:] == (1, 1, 1)


def test_the_newsletter_from_footer_and_account(shop):
    def is_checked():
        (box,) = html.document_fromstring(shop.get("/newsletter/manage/").text).cssselect(
            "[title='General Subscription']"
        )
        return box.get("checked") is not None

    assert not is_checked()
    assert "valid email" in shop.post("/newsletter/subscriber/new/", email="emma").text
    shop.post("/newsletter/subscriber/new/", email="someone@example.com")
    assert not is_checked()
    shop.post("/newsletter/subscriber/new/", email="Emma.Lopez@gmail.com")
    assert is_checked() and "You are subscribed" in shop.get("/customer/account/").text
    shop.post("/newsletter/manage/save/")
    assert not is_checked()


def test_letters_and_names_are_checked(shop):
    page = shop.get("/contact")
    assert page.request.path == "/contact/" and 'value="emma.lopez@gmail.com"' in page.text
    assert html.document_fromstring(page.text).cssselect("textarea[title='What’s on your mind?']")
    page = shop.post("/contact/index/post/", name="Emma", email="x", comment="")
    assert "valid email" in page.text and "mind? is a required" in page.text and 'value="Emma"' in page.text
    page = shop.post("/contact/index/post/", name="Emma", email="emma@example.com", comment="Hello")
    assert "Thank you" in page.text and shop.row("SELECT comment FROM letter")[0] == "Hello"
    assert "First Name is a required" in shop.post("/customer/account/editPost/", first="", last="Lopez").text
    assert (
        "Welcome, Emilia Lopez!"
        in (shop.post("/customer/account/editPost/", first="Emilia", last="Lopez"), shop.get("/"))[1].text
    )


def test_a_message_shows_once(shop):
    assert "valid email" in shop.post("/newsletter/subscriber/new/", email="").text
    assert "valid email" not in shop.get("/").text


def test_rest_wants_its_token_and_reads_the_sessions_state(shop):
    orders = "/rest/V1/orders?searchCriteria[sortOrders][0][field]=created_at"
    assert shop.client.get(orders).status_code == 401 == shop.client.get("/rest/V1/products/X/reviews").status_code
    sign_in = "/rest/default/V1/integration/admin/token"
    for sent in ({}, {**ADMIN, "password": "no"}, []):
        assert shop.client.post(sign_in, json=sent).status_code == 401
    head = {"Authorization": f"Bearer {shop.client.post(sign_in, json=ADMIN).json}"}
    assert shop.client.get(orders, headers={"Authorization": "Bearer x"}).status_code == 401
    newest = shop.client.get(
        f"{orders}&searchCriteria[sortOrders][0][direction]=DESC&searchCriteria[pageSize]=1", headers=head
    ).json
    assert [o["increment_id"] for o in newest["items"]] == ["000000170"] and newest["total_count"] == 37
    assert newest["items"][0]["grand_total"] == 365.42
    oldest = shop.client.get(orders, headers=head).json["items"]
    assert oldest[0]["increment_id"] == "000000142" and len(oldest) == 37
    product = shop.row("SELECT id FROM product WHERE sku = 'B0041MSF2S'")[0]
    review = {"ratings[4]": "18", "nickname": "GamingEmma", "title": "Okay", "detail": "Fine"}
    shop.post(f"/review/product/post/id/{product}/", **review)
    last = shop.client.get("/rest/V1/products/B0041MSF2S/reviews", headers=head).json[-1]
    assert last["nickname"] == "GamingEmma" and last["ratings"][0]["percent"] == 60
    assert last["ratings"][0]["rating_name"] == "Rating"
    assert shop.client.get("/rest/V1/products/none/reviews", headers=head).json == []


def test_a_form_address_opened_by_hand_leads_home(shop):
    assert shop.get("/wishlist/index/add/").request.path == "/"
