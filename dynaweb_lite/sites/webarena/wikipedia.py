from flask import Flask


def make_app(database):
    app = Flask(__name__)

    @app.get("/")
    @app.get("/admin/")
    def home():
        return "<title>wikipedia</title><h1>wikipedia</h1>"

    return app
