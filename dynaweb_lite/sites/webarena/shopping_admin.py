from flask import Flask


def make_app(database):
    app = Flask(__name__)

    @app.get("/")
    @app.get("/admin/")
    def home():
        return "<title>shopping_admin</title><h1>shopping_admin</h1>"

    return app
