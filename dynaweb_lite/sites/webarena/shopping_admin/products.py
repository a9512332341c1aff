"""Products: the form of one, new ones, variants of a configurable product, and its page in the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from itertools import product as pairs

from flask import Flask, abort, redirect, request

from dynaweb_lite.sites.webarena.shopping_admin.facts import WORDS
from dynaweb_lite.sites.webarena.shopping_admin.pages import parse_amount, parse_count, render, say
from dynaweb_lite.sites.webarena.shopping_admin.stock import DISABLED, ENABLED, slug_of

CATEGORIES = ("Men's Tops", "Women's Tops", "Men's Bottoms", "Women's Bottoms", "Gear")
KNOWN_SIZES = ("XXS", "XS", "S", "M", "L", "XL", "XXL", "XXXL", *map(str, range(28, 37)))
KNOWN_COLORS = (*WORDS["colors"], "Brown")
BLANK = dict.fromkeys("id size color special parent_id".split()) | {
    "name": "", "sku": "", "price": "", "qty": "", "type": "simple", "category": CATEGORIES[0], "status": ENABLED,
    "in_stock": 1, "sale": 0, "description": "",
}  # fmt: skip
"""The form of a new product."""
QTY, IN_STOCK = "product[quantity_and_stock_status][qty]", "product[quantity_and_stock_status][is_in_stock]"


def product_or_404(db: sqlite3.Connection, product_id: int) -> sqlite3.Row:
    return db.execute("SELECT * FROM product WHERE id = ?", (product_id,)).fetchone() or abort(404)


def product_url(product_id: int) -> str:
    return f"/admin/catalog/product/edit/id/{product_id}/"


def read_product(form: Mapping[str, str], is_simple: bool) -> tuple[dict, list[str]]:
    """The fields of a product's form, numbers as typed where they cannot be read, and what is wrong with them."""
    values = {key: form.get(f"product[{key}]", "").strip() for key in ("name", "sku", "price", "description")}
    errors = [f"{label} is a required field." for key, label in (("name", "Product Name"), ("sku", "SKU"))
              if not values[key]]  # fmt: skip
    special = form.get("product[special_price]", "").strip()
    price = parse_amount(values["price"])
    if price is None:
        errors.append(f"Price: {values['price']!r} is no amount such as 24.00.")
    if special and parse_amount(special) is None:
        errors.append(f"Special Price: {special!r} is no amount such as 24.00.")
    values |= {
        "price": values["price"] if price is None else price,
        "special": parse_amount(special) if parse_amount(special) is not None else special or None,
        "status": ENABLED if "product[status]" in form else DISABLED,
        "sale": int("product[sale]" in form),
        "in_stock": int(form.get(IN_STOCK) == "1"),
    }
    if is_simple:
        typed = form.get(QTY, "")
        values["qty"] = typed if parse_count(typed) is None else parse_count(typed)
        if parse_count(typed) is None:
            errors.append(f"Quantity: {typed!r} is no whole number.")
    return values, errors


def read_options(text: str, known: tuple[str, ...]) -> list[str] | None:
    """Known values from a list with commas, as they are spelled; None when one is unknown or there is none."""
    spelled = {value.lower(): value for value in known}
    found = [spelled.get(part.strip().lower()) for part in text.split(",") if part.strip()]
    return found if found and None not in found else None


def sku_is_taken(db: sqlite3.Connection, sku: str, but: int = 0) -> bool:
    return db.execute("SELECT 1 FROM product WHERE sku = ? AND id <> ?", (sku, but)).fetchone() is not None


def add_variant(db: sqlite3.Connection, parent: sqlite3.Row, size: str, color: str, qty: int) -> bool:
    """Add a simple product to a configurable one. Returns whether it was new."""
    name, sku = f"{parent['name']}-{size}-{color}", f"{parent['sku']}-{size}-{color}"
    if sku_is_taken(db, sku):
        return False
    values = {key: parent[key] for key in ("category", "price", "special")}
    values |= {"name": name, "sku": sku, "slug": slug_of(name), "size": size, "color": color, "qty": qty}
    values |= {"parent_id": parent["id"], "in_stock": int(qty > 0), "status": ENABLED, "sale": 0, "description": ""}
    add_product(db, values)
    return True


def add_product(db: sqlite3.Connection, values: dict) -> int:
    """Add a simple product with these fields. Returns its id."""
    values = values | {"type": "simple"}
    marks = ", ".join("?" * len(values))
    return db.execute(f"INSERT INTO product ({', '.join(values)}) VALUES ({marks})", [*values.values()]).lastrowid


def product_form(db: sqlite3.Connection, product, errors=(), title: str = "") -> tuple[str, int]:
    """The page with a product's form."""
    variants = db.execute("SELECT * FROM product WHERE parent_id = ? ORDER BY id", (product["id"],)).fetchall()
    reviews = db.execute("SELECT count(*) FROM review WHERE product_id = ?", (product["id"],)).fetchone()[0]
    return render(
        db, "product", title or product["name"], product=product, variants=variants, reviews=reviews, errors=errors,
        categories=CATEGORIES, qty_field=QTY, stock_field=IN_STOCK,
    ), 400 if errors else 200  # fmt: skip


def add_products(app: Flask, database: Callable) -> None:
    """Serve the forms of products and their pages in the store."""

    @app.route("/admin/catalog/product/edit/id/<int:product_id>/", methods=["GET", "POST"])
    def edit_product(product_id: int):
        with database() as db:
            product = product_or_404(db, product_id)
            if request.method == "GET":
                return product_form(db, product)
            values, errors = read_product(request.form, product["type"] == "simple")
            if sku_is_taken(db, values["sku"], product_id):
                errors.append("The SKU belongs to another product.")
            if errors:
                return product_form(db, dict(product) | values, errors, product["name"])
            assignments = ", ".join(f"{key} = ?" for key in values)
            db.execute(f"UPDATE product SET {assignments} WHERE id = ?", (*values.values(), product_id))
            say(db, "You saved the product.")
        return redirect(product_url(product_id))

    @app.route("/admin/catalog/product/new/", methods=["GET", "POST"])
    def new_product():
        with database() as db:
            if request.method == "GET":
                return product_form(db, BLANK, title="New Product")
            values, errors = read_product(request.form, True)
            values["category"] = request.form.get("product[category]", "")
            if values["category"] not in CATEGORIES:
                errors.append("Please choose a category.")
            if sku_is_taken(db, values["sku"]):
                errors.append("The SKU belongs to another product.")
            if errors:
                return product_form(db, BLANK | values, errors, "New Product")
            made = add_product(db, values | {"slug": slug_of(values["name"])})
            say(db, "You saved the product.")
        return redirect(product_url(made))

    add_configuring(app, database)
    add_store_pages(app, database)


def add_configuring(app: Flask, database: Callable) -> None:
    @app.route("/admin/catalog/product/configure/id/<int:product_id>/", methods=["GET", "POST"])
    def configure_product(product_id: int):
        with database() as db:
            parent = product_or_404(db, product_id)
            if parent["type"] != "configurable":
                abort(404)
            errors = []
            if request.method == "POST":
                sizes = read_options(request.form.get("sizes", ""), KNOWN_SIZES)
                colors = read_options(request.form.get("colors", ""), KNOWN_COLORS)
                qty = parse_count(request.form.get("qty", ""))
                checks = (("Sizes", sizes), ("Colors", colors), ("Quantity", qty))
                errors = [f"{label}: please give values as in the hint." for label, value in checks if value is None]
                if not errors:
                    added = sum(add_variant(db, parent, size, color, qty) for size, color in pairs(sizes, colors))
                    say(db, f"{added} configuration{'s' * (added != 1)} added.")
                    return redirect(product_url(product_id))
            return render(
                db, "configure", f"Create Configurations: {parent['name']}", product=parent, errors=errors,
                sizes=KNOWN_SIZES, colors=KNOWN_COLORS, form=request.form,
            ), 400 if errors else 200  # fmt: skip


def add_store_pages(app: Flask, database: Callable) -> None:
    @app.get("/<slug>.html")
    def store_page(slug: str):
        """What customers see of an enabled product; for a look from the panel."""
        with database() as db:
            product = db.execute(
                "SELECT * FROM product WHERE slug = ? AND status = ? AND parent_id IS NULL", (slug, ENABLED)
            ).fetchone() or abort(404)
            reviews = db.execute(
                "SELECT * FROM review WHERE product_id = ? AND status = 1 ORDER BY created DESC LIMIT 8",
                (product["id"],),
            ).fetchall()
            return render(db, "store_product", product["name"], product=product, reviews=reviews)
