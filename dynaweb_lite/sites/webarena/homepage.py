from flask import Flask


def make_app(database):
    app = Flask(__name__)

    @app.get("/")
    @app.get("/admin/")
    def home():
        return "<title>homepage</title><h1>homepage</h1>"

    return app
