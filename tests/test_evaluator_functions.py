"""What `func:` names call: the shop's interface, in a browser and without one, and what reads a page."""

import pytest

from dynaweb_lite.browser import RealWeb
from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.evaluator_functions import (
    Scene,
    call,
    gitlab_get_project_memeber_role,
    reddit_get_post_url,
    shopping_get_latest_order_url,
    shopping_get_sku_latest_review_author,
    shopping_get_sku_latest_review_rating,
)
from dynaweb_lite.html_page import Page, parse
from dynaweb_lite.page_reader import NotScorable
from dynaweb_lite.scripted import resolve_step
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.tasks import Task

MEMBERS = """<table><tr><td data-label="Account"><span class="gl-avatar-labeled-sublabel">@vinta</span></td>
<td class="col-max-role"><span>Guest</span></td></tr><tr><td data-label="Account"><span
class="gl-avatar-labeled-sublabel">@koush</span></td><td class="col-max-role"><span>Owner</span></td></tr></table>"""


class Shop:
    """A page of a shop whose interface is a table of answers; keeps what it was asked."""

    def __init__(self, answers, url="http://shop.test/any.html"):
        self.url, self.answers, self.asked = url, answers, []

    def request(self, method, url, headers, data=None):
        path = url.removeprefix("http://shop.test")
        self.asked.append((method, path, headers.get("Authorization"), data))
        return self.answers[path.split("?")[0]]


def shop(**more):
    return Shop({"/rest/default/V1/integration/admin/token": (200, "t0ken")} | more)


def scene(page, open_page=None, strict=False):
    return Scene(page.url, page, open_page or (lambda url: page), strict)


def test_the_newest_order_is_asked_for_as_an_administrator(monkeypatch):
    monkeypatch.delenv("WA_SHOPPING_ADMIN_USERNAME", raising=False)
    monkeypatch.delenv("WA_SHOPPING_ADMIN_PASSWORD", raising=False)
    page = shop(**{"/rest/V1/orders": (200, {"items": [{"increment_id": "000000191", "entity_id": 191}]})})
    assert shopping_get_latest_order_url(scene(page)) == "http://shop.test/sales/order/view/order_id/191/"
    (_, token_path, no_key, account), (method, path, key, nothing) = page.asked
    assert token_path == "/rest/default/V1/integration/admin/token" and no_key is None
    assert account == {"username": "admin", "password": "admin1234"}
    assert (method, key, nothing) == ("GET", "Bearer t0ken", None)
    assert "%5Bfield%5D=created_at" in path and "%5Bdirection%5D=DESC" in path and "pageSize%5D=1" in path
    monkeypatch.setenv("WA_SHOPPING_ADMIN_USERNAME", "me")
    monkeypatch.setenv("WA_SHOPPING_ADMIN_PASSWORD", "mine")
    shopping_get_latest_order_url(scene(page))
    assert page.asked[2][3] == {"username": "me", "password": "mine"}


def test_a_shop_without_orders_or_reviews_has_nothing_newest():
    page = shop(
        **{"/rest/V1/orders": (200, {"items": [], "total_count": 0}), "/rest/V1/products/A1/reviews": (200, [])}
    )
    assert shopping_get_latest_order_url(scene(page)) == ""
    assert shopping_get_sku_latest_review_author(scene(page), "A1") == ""
    assert shopping_get_sku_latest_review_rating(scene(page), "A1") == ""


def test_the_newest_review_is_the_last():
    reviews = [
        {"nickname": "Old", "ratings": [{"rating_name": "Rating", "percent": 20}]},
        {"nickname": "New", "ratings": [{"rating_name": "Rating", "percent": 80}]},
    ]
    page = shop(**{"/rest/V1/products/A%2F1/reviews": (200, reviews)})
    assert shopping_get_sku_latest_review_author(scene(page), "A/1") == "New"
    assert shopping_get_sku_latest_review_rating(scene(page), "A/1") == "80"


def test_the_interface_is_asked_from_a_page_of_the_shop():
    opened = []
    page = shop(**{"/rest/V1/orders": (200, {"items": []})})
    elsewhere = Page("http://forum.test/f/a", parse("<p>x</p>", "text/html"))
    shopping_get_latest_order_url(scene(elsewhere, lambda url: opened.append(url) or page))
    assert opened == ["http://shop.test/"] and len(page.asked) == 2


def test_a_shop_that_refuses_is_not_scorable():
    refusing = Shop({"/rest/default/V1/integration/admin/token": (401, {"message": "no"})})
    with pytest.raises(NotScorable, match="WA_SHOPPING_ADMIN_PASSWORD"):
        shopping_get_latest_order_url(scene(refusing))
    broken = shop(**{"/rest/V1/orders": (500, None)})
    with pytest.raises(NotScorable, match="answered 500"):
        shopping_get_latest_order_url(scene(broken))


@pytest.mark.parametrize(
    ("url", "right", "strict"),
    [
        ("http://forum.test/f/a/12/t/-/comment/3", "http://forum.test/f/a/12/", "http://forum.test/f/a/12/"),
        ("http://forum.test/f/a/edit", "", "http://forum.test/f/a/edit/"),
        ("http://forum.test/f/a", "", "http://forum.test/f/a"),
        ("http://forum.test/user/a/12", "", "http://forum.test/user/a/12"),
    ],
)
def test_the_post_of_an_address(url, right, strict):
    page = Page(url, parse("<p>x</p>", "text/html"))
    assert reddit_get_post_url(scene(page), "__last_url__") == right
    assert reddit_get_post_url(scene(page, strict=True), "__last_url__") == strict
    assert call(scene(page), "reddit_get_post_url", ["http://f.test/f/b/7"]) == "http://f.test/f/b/7/"


def test_a_members_role():
    page = Page("http://git.test/a/b/-/project_members", parse(MEMBERS, "text/html"))
    roles = [gitlab_get_project_memeber_role(scene(page), "__page__", name) for name in ("koush", "vinta", "nobody")]
    assert roles == ["Owner", "Guest", ""]


def checked(sku, author, **more):
    """A task that is done when this product's newest review is signed so."""
    target = {"url": "last", "locator": f"func:shopping_get_sku_latest_review_author('{sku}')"}
    checks = [target | {"required_contents": {"exact_match": author}}]
    return Task(author, ("shopping",), "__SHOPPING__", "?", {"eval_types": ["program_html"], "program_html": checks})


def ordered(number):
    """A task that is done when the newest order's page, as the shop's interface names it, shows this number."""
    checks = [{"url": "func:shopping_get_latest_order_url()", "locator": ""}]
    checks[0]["required_contents"] = {"must_include": [f"Order # {number}"]}
    return Task(number, ("shopping",), "__SHOPPING__", "?", {"eval_types": ["program_html"], "program_html": checks})


REVIEW = [
    "type [searchbox 'Search'] [PS3 remote controller] [1]",
    "click [link 'Sony PS3 Remote Controller…']",
    "click [link 'Add Your Review']",
    "click [radio '3 stars']",
    "type [textbox 'Nickname'] [GamingEmma] [0]",
    "type [textbox 'Summary'] [Okay] [0]",
    "type [textbox 'Review'] [It fits.] [0]",
    "click [button 'Submit Review']",
]


@pytest.mark.parametrize("strict", ["", "webarena"])
def test_both_worlds_ask_the_replica_in_the_episodes_session(strict):
    sku, stop = "B0041MSF2S", ["stop []", "stop []"]
    with SiteServer(ground="webarena") as server, RealWeb(server, contexts=2, strict=strict) as real:
        direct = DirectWeb(server, strict=strict)
        for world in (real, direct):
            page = world.reset([checked(sku, "GamingEmma")] * 2)[0]
            for step in REVIEW:  # in the first episode only
                page = world.step([resolve_step(step, page).action, None])[0].observation
            assert [step.reward for step in world.step(stop)] == [1, 0]
        direct.reset([ordered("")])
        newest = shopping_get_latest_order_url(scene(direct.episodes[0].tab.page))
        number = f"{int(newest.strip('/').split('/')[-1]):09d}"
        for world in (real, direct):
            world.reset([ordered(number), ordered("000000001")])
            assert [step.reward for step in world.step(stop)] == [1, 0]
