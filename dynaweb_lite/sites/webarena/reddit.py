from flask import Flask


def make_app(database):
    app = Flask(__name__)

    @app.get("/")
    @app.get("/admin/")
    def home():
        return "<title>reddit</title><h1>reddit</h1>"

    return app
