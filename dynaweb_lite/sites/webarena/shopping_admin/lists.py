"""The grids of the panel: which records they list, and by what these are searched, filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, request

from dynaweb_lite.sites.webarena.shopping_admin.grid import Column, Grid, GridView
from dynaweb_lite.sites.webarena.shopping_admin.pages import render
from dynaweb_lite.sites.webarena.shopping_admin.stock import DISABLED, ENABLED, GROUPS

ORDER_STATUSES = {
    "pending": "Pending",
    "processing": "Processing",
    "complete": "Complete",
    "closed": "Closed",
    "canceled": "Canceled",
    "holded": "On Hold",
    "fraud": "Suspected Fraud",
}
REVIEW_STATUSES = {1: "Approved", 2: "Pending", 3: "Not Approved"}
NUMBER = "printf('%09d', {})"
REVIEW = "/admin/review/product/edit/id/{id}/"
INVOICE = "/admin/sales/invoice/view/invoice_id/{id}/"
RULE = "/admin/sales_rule/promo_quote/edit/id/{id}/"

ORDERS = Grid(
    "orders", "Orders", "/admin/sales/order/", "orders",
    (
        Column("increment_id", "ID", NUMBER.format("id"), link="/admin/sales/order/view/order_id/{id}/"),
        Column("created_at", "Purchase Date", "created", "date"),
        Column("billing_name", "Bill-to Name", "name"),
        Column("grand_total", "Grand Total", "total", "money"),
        Column("customer_email", "Customer Email", "email", shown=False),
        Column("status", "Status", "status", "choice", ORDER_STATUSES),
    ),
    "-increment_id", 7, (NUMBER.format("id"), "name", "email"),
)  # fmt: skip
INVOICES = Grid(
    "invoices", "Invoices", "/admin/sales/invoice/", "invoice JOIN orders ON orders.id = order_id",
    (
        Column("increment_id", "Invoice", NUMBER.format("invoice.id"), link=INVOICE),
        Column("created_at", "Invoice Date", "invoice.created", "date"),
        Column("order_id", "Order #", NUMBER.format("order_id")),
        Column("billing_name", "Bill-to Name", "name"),
        Column("grand_total", "Amount", "invoice.total", "money"),
    ),
    "-increment_id", 7, (NUMBER.format("invoice.id"), NUMBER.format("order_id"), "name"), id="invoice.id",
)  # fmt: skip
SHIPMENTS = Grid(
    "shipments", "Shipments", "/admin/sales/shipment/", "shipment JOIN orders ON orders.id = order_id",
    (
        Column("increment_id", "Shipment", NUMBER.format("shipment.id"),
               link="/admin/admin/order_shipment/view/shipment_id/{id}/"),
        Column("created_at", "Ship Date", "shipment.created", "date"),
        Column("order_id", "Order #", NUMBER.format("order_id")),
        Column("shipping_name", "Ship-to Name", "name"),
    ),
    "-increment_id", 8, (NUMBER.format("shipment.id"), NUMBER.format("order_id"), "name"), id="shipment.id",
)  # fmt: skip
PRODUCTS = Grid(
    "products", "Products", "/admin/catalog/product/", "product",
    (
        Column("name", "Name", "name", link="/admin/catalog/product/edit/id/{id}/"),
        Column("type", "Type", "type", "choice", {"simple": "Simple Product", "configurable": "Configurable Product"}),
        Column("sku", "SKU", "sku"),
        Column("price", "Price", "price", "money"),
        Column("qty", "Quantity", "qty", "number"),
        Column("status", "Status", "status", "choice", {ENABLED: "Enabled", DISABLED: "Disabled"}, shown=False),
    ),
    "name", 6, ("name", "sku"), new=("Add Product", "/admin/catalog/product/new/"),
)  # fmt: skip
CUSTOMERS = Grid(
    "customers", "Customers", "/admin/customer/index/", "customer",
    (
        Column("name", "Name", "name", link="/admin/customer/index/edit/id/{id}/"),
        Column("email", "Email", "email"),
        Column("group", "Group", "group_name", "choice", {g: g for g in GROUPS}, shown=False),
        Column("phone", "Phone", "phone"),
        Column("region", "State/Province", "region"),
        Column("since", "Customer Since", "since", "date"),
    ),
    "name", 6, ("name", "email", "phone", "postcode", "region"),
)  # fmt: skip
_REVIEW_COLUMNS = (
    Column("title", "Title", "review.title", link=REVIEW),
    Column("created_at", "Created", "review.created", "date"),
    Column("nickname", "Nickname", "nickname"),
    Column("detail", "Review", "detail"),
    Column("product", "Product", "product.name"),
    Column("sku", "SKU", "sku", shown=False),
    Column("author", "Type", "author", "choice", {"Customer": "Customer", "Guest": "Guest"}, shown=False),
)
_REVIEW_SOURCE = "review JOIN product ON product.id = product_id"
_REVIEW_TEXTS = ("review.title", "nickname", "detail", "product.name")
REVIEWS = Grid(
    "reviews", "Reviews", "/admin/review/product/index/", _REVIEW_SOURCE,
    (Column("status", "Status", "review.status", "choice", REVIEW_STATUSES), *_REVIEW_COLUMNS),
    "-created_at", 5, _REVIEW_TEXTS, id="review.id",
)  # fmt: skip
PENDING_REVIEWS = Grid(
    "pending_reviews", "Pending Reviews", "/admin/review/product/pending/", _REVIEW_SOURCE, _REVIEW_COLUMNS,
    "-created_at", 5, _REVIEW_TEXTS, id="review.id", where="review.status = 2",
)  # fmt: skip
PAGES = Grid(
    "pages", "Pages", "/admin/cms/page/", "page",
    (
        Column("page_id", "ID", "id", "number"),
        Column("title", "Title", "title", link="/admin/cms/page/edit/page_id/{id}/"),
        Column("identifier", "URL Key", "url_key"),
        Column("is_active", "Status", "active", "choice", {1: "Enabled", 0: "Disabled"}),
    ),
    "page_id", 8, ("title", "url_key", "content"),
)  # fmt: skip
RULES = Grid(
    "rules", "Cart Price Rules", "/admin/sales_rule/promo_quote/", "rule",
    (
        Column("rule_id", "ID", "id", "number"),
        Column("name", "Rule", "name", link=RULE),
        Column("coupon_code", "Coupon Code", "coupon_code"),
        Column("is_active", "Status", "active", "choice", {1: "Active", 0: "Inactive"}),
    ),
    "rule_id", 8, ("name", "coupon_code", "description"),
    new=("Add New Rule", "/admin/sales_rule/promo_quote/new/"),
)  # fmt: skip
SEARCH_TERMS = Grid(
    "search_terms", "Search Terms Report", "/admin/search/term/report/", "search_term",
    (
        Column("query_id", "ID", "id", "number"),
        Column("query_text", "Search Query", "words"),
        Column("num_results", "Results", "results", "number"),
        Column("popularity", "Hits", "uses", "number"),
    ),
    "query_id", 8, ("words",),
)  # fmt: skip
THEMES = Grid(
    "themes", "Themes", "/admin/admin/system_design_theme/", "theme",
    (
        Column("theme_title", "Theme Title", "title", link="/admin/admin/system_design_theme/edit/id/{id}/"),
        Column("parent", "Parent Theme", "parent"),
        Column("path", "Theme Path", "path"),
    ),
    "theme_title", 8, ("title", "path"),
)  # fmt: skip
REVIEWS_BY_PRODUCT = Grid(
    "reviews_by_product", "Products Reviews Report", "/admin/reports/report_review/product/",
    "(SELECT product.id, name, count(*) AS reviews, round(avg(stars), 2) AS rating, max(created) AS latest FROM review "
    "JOIN product ON product.id = product_id GROUP BY product.id)",
    (
        Column("name", "Product", "name", link="/admin/review/product/index/?product={value}"),
        Column("review_cnt", "Reviews", "reviews", "number"),
        Column("avg_rating", "Average (of 5)", "rating", "number"),
        Column("last_created", "Last Review", "latest", "date"),
    ),
    "-review_cnt", 8, ("name",),
)  # fmt: skip
REVIEWS_BY_CUSTOMER = Grid(
    "reviews_by_customer", "Customer Reviews Report", "/admin/reports/report_review/customer/",
    "(SELECT min(id) AS id, nickname, author, count(*) AS reviews, round(avg(stars), 2) AS rating FROM review "
    "GROUP BY nickname, author)",
    (
        Column("customer", "Customer", "nickname"),
        Column("author", "Type", "author"),
        Column("review_cnt", "Reviews", "reviews", "number"),
        Column("avg_rating", "Average (of 5)", "rating", "number"),
    ),
    "-review_cnt", 8, ("nickname",),
)  # fmt: skip
GRIDS = (
    ORDERS, INVOICES, SHIPMENTS, PRODUCTS, CUSTOMERS, REVIEWS, PENDING_REVIEWS, PAGES, RULES, SEARCH_TERMS, THEMES,
    REVIEWS_BY_PRODUCT, REVIEWS_BY_CUSTOMER,
)  # fmt: skip


def add_lists(app: Flask, database: Callable) -> None:
    """Serve every grid at its path, and its filter form there with ?filters=open."""

    def make_view(grid: Grid) -> Callable:
        def view() -> str:
            with database() as db:
                shown = GridView(db, grid, request.args.to_dict())
                template = "filters" if request.args.get("filters") == "open" else "grid"
                return render(db, template, grid.title, view=shown, grid=grid)

        return view

    for grid in GRIDS:
        app.add_url_rule(grid.path, f"list_{grid.name}", make_view(grid))
