"""WebArena's home page: links to the six sites, a calculator, a scratchpad, and the accounts that the sites know."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from flask import Flask, redirect, render_template, request

from dynaweb_lite.sites.login import ACCOUNTS
from dynaweb_lite.sites.webarena import new_app
from dynaweb_lite.sites.webarena.homepage.calculator import CalculationError, calculate
from dynaweb_lite.tasks import REPLICA_HOSTS, REPLICA_PATHS

SITES = {
    "shopping": ("OneStopShop", "An online shop"),
    "shopping_admin": ("Merchant Admin Portal", "Where the merchant keeps products, orders and customers"),
    "reddit": ("Reddit", "Forums to share links and talk"),
    "gitlab": ("GitLab", "Code, issues and merge requests"),
    "map": ("OpenStreetMap", "Places, addresses and routes"),
    "wikipedia": ("Wikipedia", "The free encyclopedia"),
}
"""Name and description of each site."""
MAX_TEXT = 10_000


def make_app(database: Callable) -> Flask:
    """The home page's application; `database()` is a context manager that yields the session's database."""
    app = new_app(__name__)

    def page(template: str, title: str, **values: object) -> str:
        return render_template(f"homepage/{template}.html", title=title, **values)

    @app.get("/")
    @app.get("/index.html")
    def home():
        sites = [(site_url(request.host_url, site), *texts) for site, texts in SITES.items()]
        return page("home", "Homepage", sites=sites)

    @app.get("/calculator.html")
    @app.get("/calculator")
    def calculator():
        expression = request.args.get("expression", "").strip()
        result = problem = ""
        try:
            result = calculate(expression) if expression else ""
        except CalculationError as error:
            problem = str(error)
        return page("calculator", "Calculator", expression=expression, result=result, problem=problem)

    @app.route("/scratchpad.html", methods=("GET", "POST"))
    @app.route("/scratchpad", methods=("GET", "POST"))
    def scratchpad():
        with database() as db:
            if request.method == "POST":
                db.execute("UPDATE pad SET text = ?", (request.form.get("text", "")[:MAX_TEXT],))
                return redirect("/scratchpad.html?saved=1", 303)
            text = db.execute("SELECT text FROM pad").fetchone()[0]
        return page("scratchpad", "Scratchpad", text=text, is_saved="saved" in request.args)

    @app.get("/password.html")
    def passwords():
        return page(
            "passwords", "Accounts", accounts=[(SITES[site][0], *account) for site, account in ACCOUNTS.items()]
        )

    @app.errorhandler(404)
    @app.errorhandler(405)
    def missing(error):
        return page("missing", "Not Found"), error.code

    return app


def site_url(here: str, site: str) -> str:
    """Where a site is, seen from here: the same scheme, port and .test or .localhost."""
    split = urlsplit(here)
    host = REPLICA_HOSTS[site]
    if (split.hostname or "").endswith(".localhost"):
        host = host.removesuffix("test") + "localhost"
    port = f":{split.port}" if split.port else ""
    return f"{split.scheme}://{host}{port}{REPLICA_PATHS.get(site, '')}/"
