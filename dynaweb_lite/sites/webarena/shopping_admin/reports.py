"""Reports over a span of days: orders, tax, shipping, refunds, coupons, best sellers, product views, customers."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from flask import Flask, request

from dynaweb_lite.sites.webarena.shopping_admin.lists import ORDER_STATUSES
from dynaweb_lite.sites.webarena.shopping_admin.pages import long_date, money, parse_date, render, short_date

PERIODS = {"day": "Day", "month": "Month", "year": "Year"}
STATUSES = {k: ORDER_STATUSES[k] for k in ("pending", "processing", "complete", "closed", "canceled")}
TOP = 5
"""Products that a best seller or view report lists for each interval, as Magento does."""
_FORMS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_NOT_CANCELED = "status <> 'canceled'"


@dataclass(frozen=True)
class Report:
    """A report. `sql` has {interval} for the period that a day falls in and {where} for the chosen days and status.

    `columns` are (title, kind) with kind text, number or money; the first is the interval where `has_period`.
    `sums` are the columns that the last line adds up. `size` rows stand on a page.
    """

    title: str
    path: str
    columns: tuple[tuple[str, str], ...]
    sql: str
    day: str = "created"
    has_period: bool = True
    has_status: bool = False
    where: str = "1"
    note: str = "Canceled orders are not counted."
    sums: tuple[int, ...] = ()
    size: int = 8


INTERVAL = ("Interval", "interval")
REPORTS = (
    Report(
        "Orders Report", "/admin/reports/report_sales/sales/",
        (INTERVAL, ("Orders", "number"), ("Sales Items", "number"), ("Sales Total", "money")),
        "SELECT {interval}, count(*), sum((SELECT sum(qty) FROM item WHERE order_id = orders.id)), sum(total) "
        "FROM orders WHERE {where} GROUP BY 1 ORDER BY 1",
        has_status=True, note="", sums=(1, 2, 3), size=6,
    ),
    Report(
        "Tax Report", "/admin/reports/report_sales/tax/",
        (INTERVAL, ("Tax", "text"), ("Orders", "number"), ("Tax Amount", "money")),
        "SELECT {interval}, 'Michigan 8.25%', count(*), sum(tax) FROM orders WHERE {where} AND tax > 0 GROUP BY 1 "
        "ORDER BY 1",
        where=_NOT_CANCELED, sums=(2, 3),
    ),
    Report(
        "Shipping Report", "/admin/reports/report_sales/shipping/",
        (INTERVAL, ("Carrier/Method", "text"), ("Orders", "number"), ("Total Shipping", "money")),
        "SELECT {interval}, 'Flat Rate - Fixed', count(*), sum(shipping) FROM orders WHERE {where} GROUP BY 1 "
        "ORDER BY 1",
        where=_NOT_CANCELED, sums=(2, 3),
    ),
    Report(
        "Refunds Report", "/admin/reports/report_sales/refunded/",
        (INTERVAL, ("Refunds", "number"), ("Total Refunded", "money")),
        "SELECT {interval}, count(*), sum(amount) FROM refund WHERE {where} GROUP BY 1 ORDER BY 1",
        note="", sums=(1, 2),
    ),
    Report(
        "Coupons Report", "/admin/reports/report_sales/coupons/",
        (INTERVAL, ("Coupon Code", "text"), ("Uses", "number"), ("Discount", "money")),
        "SELECT {interval}, coupon, count(*), sum(discount) FROM orders WHERE {where} AND coupon <> '' GROUP BY 1, 2 "
        "ORDER BY 1, 2",
        where=_NOT_CANCELED, sums=(2, 3),
    ),
    Report(
        "Bestsellers Report", "/admin/reports/report_sales/bestsellers/",
        (INTERVAL, ("Product", "text"), ("Price", "money"), ("Order Quantity", "number")),
        "SELECT * FROM (SELECT {interval} AS at, item.name, max(price), sum(qty) AS sold, row_number() OVER (PARTITION "
        "BY {interval} ORDER BY sum(qty) DESC, item.name) AS rank FROM item JOIN orders ON orders.id = order_id "
        f"WHERE {{where}} GROUP BY 1, 2) WHERE rank <= {TOP} ORDER BY at, rank",
        where=_NOT_CANCELED, note=f"The {TOP} best of each interval. Canceled orders are not counted.",
    ),
    Report(
        "Product Views Report", "/admin/reports/report_product/viewed/",
        (INTERVAL, ("Product", "text"), ("Price", "money"), ("Views", "number")),
        "SELECT * FROM (SELECT {interval} AS at, name, max(price), sum(views) AS seen, row_number() OVER (PARTITION "
        "BY {interval} ORDER BY sum(views) DESC, name) AS rank FROM viewed JOIN product ON product.id = product_id "
        f"WHERE {{where}} GROUP BY 1, 2) WHERE rank <= {TOP} ORDER BY at, rank",
        day="day", note=f"The {TOP} most viewed of each interval.",
    ),
    Report(
        "Order Count Report", "/admin/reports/report_customer/orders/",
        (("Customer", "text"), ("Orders", "number"), ("Average", "money"), ("Total", "money")),
        "SELECT name, count(*) AS n, avg(total), sum(total) FROM orders WHERE {where} GROUP BY customer_id "
        "ORDER BY n DESC, name",
        has_period=False, has_status=True, note="", sums=(1, 3), size=7,
    ),
)  # fmt: skip


class ReportView:
    """What a report's page shows for the query of an address; no rows until both days are given and can be read."""

    def __init__(self, db: sqlite3.Connection, report: Report, query: Mapping[str, str]) -> None:
        self.report, self.errors, self.rows, self.total = report, [], [], ""
        self.period = query.get("period_type", "day") if query.get("period_type") in PERIODS else "day"
        self.status = query.get("status", "") if query.get("status") in STATUSES else ""
        self.days = {side: self._day(side, query.get(side, "").strip()) for side in ("from", "to")}
        self.asked = "from" in query or "to" in query
        if self.asked and not self.errors:
            self._check_span()
        if self.asked and not self.errors:
            self._read(db, query)

    def _day(self, side: str, text: str) -> tuple[str, str]:
        """A day as the form shows it, and as ISO text; empty where it was left out."""
        day = parse_date(text) if text else ""
        if day is None:
            self.errors.append(f"{side.title()}: {text!r} is no date; write it as 5/31/2023.")
            return text, ""
        return (short_date(day), day) if day else ("", "")

    def _check_span(self) -> None:
        first, last = self.days["from"][1], self.days["to"][1]
        if not (first and last):
            self.errors.append("Please give both days, From and To.")
        elif first > last:
            self.errors.append("From must not be after To.")

    def _read(self, db: sqlite3.Connection, query: Mapping[str, str]) -> None:
        report = self.report
        where, values = f"{report.where} AND date({report.day}) BETWEEN ? AND ?", [d for _, d in self.days.values()]
        if report.has_status and self.status:
            where, values = where + " AND status = ?", [*values, self.status]
        interval = f"strftime('{_FORMS[self.period]}', {report.day})"
        rows = db.execute(report.sql.format(interval=interval, where=where), values).fetchall()
        self.count, self.pages = len(rows), max(1, math.ceil(len(rows) / report.size))
        asked = query.get("p", "")
        self.page = min(max(1, int(asked) if asked.isdecimal() and len(asked) < 7 else 1), self.pages)
        start = (self.page - 1) * report.size
        width = len(report.columns)
        self.rows = [self._cells(tuple(row)[:width]) for row in rows[start : start + report.size]]
        if rows and report.sums:
            parts = [f"{report.columns[i][0]} {self._cell(i, sum(row[i] for row in rows))}" for i in report.sums]
            self.total = "Total: " + ", ".join(parts)

    def _cells(self, row: tuple) -> list[str]:
        return [self._cell(i, value) for i, value in enumerate(row)]

    def _cell(self, column: int, value) -> str:
        kind = self.report.columns[column][1]
        if kind == "money":
            return money(value)
        return interval_name(value) if kind == "interval" else str(value)

    def page_url(self, page: int) -> str:
        query = {side: shown for side, (shown, _) in self.days.items()} | {"period_type": self.period}
        return self.report.path + "?" + urlencode(query | {"status": self.status, "p": page})


def interval_name(text: str) -> str:
    """2023-05-31 -> May 31, 2023; 2023-05 -> 5/2023; 2023 stays."""
    if len(text) == 10:
        return long_date(text)
    return f"{int(text[5:])}/{text[:4]}" if len(text) == 7 else text


def add_reports(app: Flask, database: Callable) -> None:
    """Serve every report at its path; days, period and status stand in the query."""

    def make_view(report: Report) -> Callable:
        def view() -> tuple[str, int]:
            with database() as db:
                shown = ReportView(db, report, request.args.to_dict())
                return render(
                    db, "report", report.title, view=shown, report=report, periods=PERIODS, statuses=STATUSES
                ), 400 if shown.errors else 200

        return view

    for report in REPORTS:
        app.add_url_rule(report.path, f"report_{report.path}", make_view(report))
