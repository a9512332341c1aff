"""The forum, a light replica of WebArena's reddit site (Postmill), with its URL layout."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, abort, redirect, render_template, request

from dynaweb_lite.sites.content import FORUM_SIZE, slugify

HITS = 5


def forum_app(database: Callable) -> Flask:
    """The forum's application; `database()` is a context manager that yields the session's database."""
    app = Flask(__name__)

    def page(db, template: str, title: str, **values) -> str:
        style = dict(db.execute("SELECT key, value FROM style").fetchall())
        return render_template(
            f"forum/{template}.html", title=title, style=style, query=request.args.get("q", ""), **values
        )

    def listing(db, title: str, posts: list, **values) -> str:
        return page(db, "listing", title, posts=posts, **{"heading": title, **values})

    def forum_or_404(db, name: str):
        return db.execute("SELECT * FROM forum WHERE name = ?", (name,)).fetchone() or abort(404)

    def post_or_404(db, post_id: int):
        return db.execute("SELECT * FROM post WHERE id = ?", (post_id,)).fetchone() or abort(404)

    def post_url(post) -> str:
        return f"/f/{post['forum']}/{post['id']}/{post['slug']}"

    @app.get("/")
    def home():
        with database() as db:
            hot = db.execute("SELECT * FROM post ORDER BY points DESC, id LIMIT 5").fetchall()
            return listing(db, "Home", hot, heading="Hot Posts")

    @app.get("/forums")
    def forums():
        with database() as db:
            return page(db, "forums", "Forums", forums=db.execute("SELECT * FROM forum ORDER BY name").fetchall())

    @app.get("/search")
    def search():
        terms = request.args.get("q", "").lower().split()
        with database() as db:
            rows = db.execute("SELECT * FROM post ORDER BY id").fetchall()
            hits = [r for r in rows if terms and set(terms) <= set(r["title"].lower().split())][:HITS]
            return listing(db, "Search", hits, heading="Search Results", empty="No posts found.")

    @app.get("/f/<name>")
    def forum(name: str):
        with database() as db:
            row = forum_or_404(db, name)
            posts = db.execute("SELECT * FROM post WHERE forum = ? ORDER BY id DESC", (name,)).fetchall()
            return listing(db, name, posts[: FORUM_SIZE.page], forum=row)

    @app.post("/f/<name>/subscribe")
    def subscribe(name: str):
        with database() as db:
            forum_or_404(db, name)
            db.execute("UPDATE forum SET subscribed = 1 - subscribed WHERE name = ?", (name,))
        return redirect(f"/f/{name}")

    @app.get("/f/<name>/<int:post_id>/<slug>")
    def post(name: str, post_id: int, slug: str):
        with database() as db:
            row = post_or_404(db, post_id)
            if (name, slug) != (row["forum"], row["slug"]):
                return redirect(post_url(row))
            comments = db.execute("SELECT * FROM comment WHERE post_id = ? ORDER BY id DESC", (post_id,)).fetchall()
            return page(db, "post", row["title"], post=row, comments=comments)

    @app.post("/sv/<int:post_id>")
    def vote(post_id: int):
        choice = 1 if request.form.get("choice") == "up" else -1
        with database() as db:
            row = post_or_404(db, post_id)
            chosen = 0 if row["vote"] == choice else choice
            db.execute(
                "UPDATE post SET vote = ?, points = points + ? WHERE id = ?", (chosen, chosen - row["vote"], post_id)
            )
        return redirect(post_url(row))

    @app.post("/f/<name>/<int:post_id>/-/comment")
    def comment(name: str, post_id: int):
        body = " ".join(request.form.get("comment", "").split())
        with database() as db:
            row = post_or_404(db, post_id)
            if body:
                user = db.execute("SELECT value FROM style WHERE key = 'user'").fetchone()[0]
                db.execute("INSERT INTO comment (post_id, author, body) VALUES (?,?,?)", (post_id, user, body))
        return redirect(post_url(row))

    @app.get("/submit")
    @app.get("/submit/<name>")
    def submit(name: str = ""):
        with database() as db:
            names = [r["name"] for r in db.execute("SELECT name FROM forum ORDER BY name")]
            return page(db, "submit", "Submit", forums=names, chosen=name)

    @app.post("/submit")
    def create():
        title, name = " ".join(request.form.get("title", "").split()), request.form.get("forum", "")
        if not title:
            return redirect(f"/submit/{name}")
        with database() as db:
            forum_or_404(db, name)
            user = db.execute("SELECT value FROM style WHERE key = 'user'").fetchone()[0]
            values = (name, title, slugify(title) or "post", "", user, 1)
            insert = "INSERT INTO post (forum, title, slug, body, author, points) VALUES (?,?,?,?,?,?)"
            row = post_or_404(db, db.execute(insert, values).lastrowid)
        return redirect(post_url(row))

    @app.get("/user/<name>")
    def user(name: str):
        with database() as db:
            posts = db.execute("SELECT * FROM post WHERE author = ? ORDER BY id DESC LIMIT 5", (name,)).fetchall()
            return listing(db, name, posts, empty="No posts yet.")

    @app.errorhandler(404)
    def missing(_error):
        with database() as db:
            return page(db, "missing", "Not Found"), 404

    return app
