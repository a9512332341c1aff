"""What `func:…` in a task file may name, as functions of our own: nothing from a task file is executed.

The shop's are answered by Magento's REST interface, on live sites and on the replica alike, asked from a page of the
shop so that the request carries the episode's session. Administrator of a live shop: WA_SHOPPING_ADMIN_USERNAME and
WA_SHOPPING_ADMIN_PASSWORD; without them, the account that WebArena publishes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from dynaweb_lite.locators import texts_locator
from dynaweb_lite.page_reader import NotScorable, PageReader
from dynaweb_lite.sites.login import ACCOUNTS
from dynaweb_lite.tasks import resolve_url

ADMINISTRATOR = ACCOUNTS["shopping_admin"]
NEWEST_ORDER = {
    "searchCriteria[sortOrders][0][field]": "created_at",
    "searchCriteria[sortOrders][0][direction]": "DESC",
    "searchCriteria[pageSize]": "1",
}


@dataclass(frozen=True)
class Scene:
    """Where a function is called: the page that the agent stands on, the page it reads, and how to open others."""

    last_url: str
    page: PageReader
    open_page: Callable[[str], PageReader]
    strict: bool = False


def reddit_get_post_url(scene: Scene, url: str) -> str:
    """The address of the post that a forum address belongs to.

    For another address: nothing, so that the check fails; WebArena's own goes on with the address as it is.
    """
    url = url.replace("__last_url__", scene.last_url)
    split = urlsplit(url)
    parts = split.path.split("/")
    if scene.strict:
        is_post = len(parts) >= 4 and parts[1] == "f"
        return f"{split.scheme}://{split.netloc}/f/{parts[2]}/{parts[3]}/" if is_post else url
    is_post = len(parts) >= 4 and parts[1] == "f" and parts[3].isdigit()
    return f"{split.scheme}://{split.netloc}/f/{parts[2]}/{parts[3]}/" if is_post else ""


def shopping_get_latest_order_url(scene: Scene) -> str:
    """The address of the newest order, empty when the shop has none."""
    answer = _ask_shop(scene, f"/rest/V1/orders?{urlencode(NEWEST_ORDER)}")
    orders = answer.get("items") if isinstance(answer, dict) else None
    number = int(orders[0]["increment_id"]) if orders else 0
    return f"{_shop()}/sales/order/view/order_id/{number}/" if number else ""


def shopping_get_sku_latest_review_author(scene: Scene, sku: str) -> str:
    """Who wrote the newest review of a product, empty when it has none."""
    reviews = _reviews(scene, sku)
    return str(reviews[-1].get("nickname", "")) if reviews else ""


def shopping_get_sku_latest_review_rating(scene: Scene, sku: str) -> str:
    """The stars of the newest review of a product in percent (five stars: 100), empty when it has none."""
    reviews = _reviews(scene, sku)
    ratings = reviews[-1].get("ratings") if reviews else None
    return str(ratings[0].get("percent", "")) if ratings else ""


def gitlab_get_project_memeber_role(scene: Scene, page: str, account: str) -> str:
    """The role of an account on a project's page of members, empty when it is none (the name is WebArena's)."""
    names = _texts(scene.page, "td[data-label='Account'] span.gl-avatar-labeled-sublabel")
    roles = _texts(scene.page, "td.col-max-role span")
    at = names.index(f"@{account}") if f"@{account}" in names else len(roles)
    return roles[at] if at < len(roles) else ""


def get_query_text(scene: Scene, page: str, css: str) -> str:
    """The text of the first element that fits a selector."""
    return next(iter(_texts(scene.page, css)), "")


FUNCTIONS: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (
        reddit_get_post_url,
        shopping_get_latest_order_url,
        shopping_get_sku_latest_review_author,
        shopping_get_sku_latest_review_rating,
        gitlab_get_project_memeber_role,
        get_query_text,
    )
}


def call(scene: Scene, name: str, arguments: Sequence[str]) -> str:
    """The result of `func:name(arguments)`. Raises NotScorable for an unknown name or a wrong number of arguments."""
    check_function(name, arguments)
    return FUNCTIONS[name](scene, *arguments)


def check_function(name: str, arguments: Sequence[str]) -> None:
    """Raise NotScorable when `func:name(arguments)` calls nothing that is known here."""
    if name not in FUNCTIONS:
        raise NotScorable(f"no function {name!r}; there are {', '.join(FUNCTIONS)}")
    wanted = FUNCTIONS[name].__code__.co_argcount - 1
    if len(arguments) != wanted:
        raise NotScorable(f"{name} takes {wanted} arguments, not {len(arguments)}")


def _texts(page: PageReader, css: str) -> list[str]:
    return page.locate(texts_locator(css))


def _shop() -> str:
    return resolve_url("__SHOPPING__").rstrip("/")


def _reviews(scene: Scene, sku: str) -> list[dict]:
    answer = _ask_shop(scene, f"/rest/V1/products/{quote(sku, safe='')}/reviews")
    return answer if isinstance(answer, list) else []


def _ask_shop(scene: Scene, path: str) -> Any:
    """What the shop's REST interface says to its administrator. Raises NotScorable when it refuses."""
    shop = _shop()
    here = urlsplit(scene.page.url)[:2] == urlsplit(shop)[:2]
    page = scene.page if here else scene.open_page(f"{shop}/")
    username = os.environ.get("WA_SHOPPING_ADMIN_USERNAME", ADMINISTRATOR[0])
    account = {"username": username, "password": os.environ.get("WA_SHOPPING_ADMIN_PASSWORD", ADMINISTRATOR[1])}
    headers = {"Content-Type": "application/json"}
    status, token = page.request("POST", f"{shop}/rest/default/V1/integration/admin/token", headers, account)
    if status != 200 or not isinstance(token, str):
        raise NotScorable(
            f"the shop gave {username!r} no token (status {status}): set WA_SHOPPING_ADMIN_USERNAME and "
            "WA_SHOPPING_ADMIN_PASSWORD"
        )
    status, answer = page.request("GET", shop + path, headers | {"Authorization": f"Bearer {token}"})
    if status != 200:
        raise NotScorable(f"the shop's interface answered {status} to {path}")
    return answer
