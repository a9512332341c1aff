"""What happened in the shop: orders with what follows from them, reviews, searches and product views."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from dynaweb_lite.sites.webarena.shopping_admin.facts import MONTHS, WORDS

SHIPPING_EACH = 5.0
"""Flat rate a piece."""
YEAR_CAP, MAX_LINES, CANCELED_CAP, COMPLETE_CAP = 2, 4, 5, 4
"""Pieces of an ordinary product a year, lines of an order, and orders of an ordinary customer by status."""
COUPON, COUPON_PERCENT, COUPON_SHARE = "NEWS15", 15, 0.08
"""The code of the newsletter, what it takes off, and the share of orders that use it."""
MOODS = {5: "praise", 4: "praise", 3: "mixed", 2: "blame", 1: "blame"}


@dataclass
class Order:
    """An order: `lines` holds (product, pieces), `extra` what few orders have: discount, coupon, tax."""

    id: int
    customer: dict
    created: str
    status: str
    lines: list[tuple[dict, int]] = field(default_factory=list)
    extra: dict = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether it is part of the sales."""
        return self.status != "canceled"

    @property
    def subtotal(self) -> float:
        return sum((p["special"] or p["price"]) * pieces for p, pieces in self.lines)

    @property
    def shipping(self) -> float:
        return SHIPPING_EACH * sum(pieces for _, pieces in self.lines)

    @property
    def total(self) -> float:
        return round(self.subtotal + self.shipping + self.extra.get("tax", 0) - self.extra.get("discount", 0), 2)


class History:
    """Makes all orders of a shop: the facts' own, then ordinary ones that keep its ranks and its best sellers."""

    def __init__(self, facts: dict, products: list[dict], customers: list[dict], rng: random.Random) -> None:
        self.facts, self.rng = facts, rng
        self.customers = {c["name"]: c for c in customers}
        self.by_sku = {p["sku"]: p for p in products if p["type"] == "simple"}
        self.pool = [p for p in self.by_sku.values() if p["sku"] not in facts["sales"]]
        self.sold: Counter = Counter()
        self.orders = [self._fixed(*row) for row in facts["orders"]]
        self._ordinary()
        self._fill()
        self.orders.sort(key=lambda order: order.id)

    def _fixed(self, id_: int, name: str, created: str, status: str, lines: list[str], *extra: dict) -> Order:
        pairs = [line.rsplit(" ", 1) for line in lines]
        known = [(self.by_sku[sku], int(pieces)) for sku, pieces in pairs]
        return Order(id_, self.customers[name], created, status, known, *extra)

    def _ordinary(self) -> None:
        """Orders without lines, so many of each status and month as the facts say."""
        facts, rng = self.facts, self.rng
        fixed = Counter((o.created[:7], o.status) for o in self.orders)
        complete = [m for m, n in facts["complete_by_month"].items() for _ in range(n - fixed[m, "complete"])]
        pending = [rng.choice(MONTHS[-3:]) for _ in range(facts.get("pending_count", 0))]
        rest = facts["order_count"] - len(self.orders) - len(complete) - len(pending)
        canceled = [rng.choice(MONTHS[:-1]) for _ in range(rest)]
        ids = list(set(range(1, facts["order_count"] + 1)) - {o.id for o in self.orders})
        rng.shuffle(ids)
        for status, months, cap in (
            ("complete", complete, COMPLETE_CAP),
            ("pending", pending, 1),
            ("canceled", canceled, CANCELED_CAP),
        ):
            names = self._names(status, len(months), cap)
            for month, name in zip(months, names, strict=True):
                self.orders.append(Order(ids.pop(), self.customers[name], self._moment(month), status))

    def _moment(self, month: str) -> str:
        """A time in a month, after its first two days."""
        rng = self.rng
        return (
            f"{month}-{rng.randint(3, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
        )

    def _names(self, status: str, count: int, cap: int) -> list[str]:
        """Who placed these orders: the ranks of the facts exactly, and nobody else as often."""
        ranks = self.facts.get(f"{status}_by_customer", {})
        fixed = Counter(o.customer["name"] for o in self.orders if o.status == status)
        names = [name for name, total in ranks.items() for _ in range(total - fixed[name])]
        others = [name for name in self.customers if name not in ranks for _ in range(cap - fixed[name])]
        names += self.rng.sample(others, count - len(names))
        self.rng.shuffle(names)
        return names

    def _fill(self) -> None:
        """Give the ordinary orders their lines: the best sellers first, then what keeps below them."""
        for order in self.orders:
            for product, pieces in order.lines:
                self._count(order, product, pieces)
        empty = [o for o in self.orders if not o.lines]
        for sku, months in self.facts["sales"].items():
            for month, pieces in months.items():
                able = [o for o in empty if o.counts and o.created[:7] == month and len(o.lines) < MAX_LINES]
                for order in self.rng.choices(able, k=pieces):
                    self._add(order, self.by_sku[sku])
        for order in empty:
            while len(order.lines) < self.rng.choice((1, 2, 2, 3)):
                self._add_ordinary(order)
            if self.rng.random() < COUPON_SHARE:
                order.extra = {"coupon": COUPON, "discount": round(order.subtotal * COUPON_PERCENT / 100, 2)}

    def _add(self, order: Order, product: dict) -> None:
        """One more piece of a product, on its own line or on the one that is there."""
        pieces = dict((p["sku"], n) for p, n in order.lines).get(product["sku"], 0)
        order.lines = [(p, n) for p, n in order.lines if p is not product] + [(product, pieces + 1)]
        self._count(order, product, 1)

    def _add_ordinary(self, order: Order) -> None:
        product = self.rng.choice(self.pool)
        year, month = order.created[:4], order.created[:7]
        if order.counts and (self.sold[product["sku"], year] >= YEAR_CAP or self.sold[product["sku"], month]):
            return
        self._add(order, product)
        if not order.counts and self.rng.random() < 0.25:
            self._add(order, product)

    def _count(self, order: Order, product: dict, pieces: int) -> None:
        if order.counts:
            self.sold[product["sku"], order.created[:4]] += pieces
            self.sold[product["sku"], order.created[:7]] += pieces


def make_reviews(facts: dict, products: list[dict], customers: list[dict], rng: random.Random) -> Iterator[tuple]:
    """Rows: id, product, time, status (1 approved, 2 pending), nickname, author's kind, title, text, stars."""
    visible = [p for p in products if p["parent_id"] is None]
    by_sku = {p["sku"]: p for p in visible}
    fixed = {row[0]: row[1:] for row in facts["reviews"]}
    ordinary = [p for p in visible if p["sku"] not in facts["unreviewed"]]
    names = {c["name"] for c in customers}
    pending = facts["pending_reviews"]
    first, last = (int(day[-2:]) + 31 * int(day[5:7]) for day in facts["review_days"])
    for id_ in [*range(1, facts["approved_reviews"] + 1), *pending]:
        day = rng.randint(first, last)
        month, day = divmod(day - 1, 31)
        created = f"2023-{month:02}-{min(day + 1, 30):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00"
        product, nickname, stars, title, text = fixed.get(id_) or _review(ordinary, rng)
        kind = "Customer" if nickname in names else "Guest"
        status = 2 if id_ in pending else 1
        yield id_, by_sku[product]["id"], created, status, nickname, kind, title, text, stars


def _review(products: list[dict], rng: random.Random) -> tuple[str, str, int, str, str]:
    stars = rng.choice((5, 5, 5, 4, 4, 4, 3, 2, 1))
    words = WORDS[MOODS[stars]]
    text = f"{rng.choice(words['openings'])} {rng.choice(words['closings'])}"
    return rng.choice(products)["sku"], rng.choice(WORDS["nicknames"]), stars, rng.choice(words["titles"]), text


def make_search_terms(facts: dict, products: list[dict], rng: random.Random) -> list[tuple]:
    """Rows: id, words, how many products they find, uses, rank by recency."""
    visible = [f"{p['name']} {p['sku']}".lower() for p in products if p["parent_id"] is None]
    ranks = rng.sample(range(len(facts["search_terms"])), len(facts["search_terms"]))
    return [
        (n, words, sum(all(w.rstrip("s") in name for w in words.lower().split()) for name in visible), uses, rank)
        for n, ((words, uses), rank) in enumerate(zip(facts["search_terms"], ranks, strict=True), 1)
    ]
