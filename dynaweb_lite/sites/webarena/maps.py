from flask import Flask


def make_app(database):
    app = Flask(__name__)

    @app.get("/")
    @app.get("/admin/")
    def home():
        return "<title>maps</title><h1>maps</h1>"

    return app
