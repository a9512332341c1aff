"""Logins for the replicas: a wall in front of an application, with the original's address, form and session cookie.

Replicas are logged in from the start. Behind a wall they ask for WebArena's public accounts, and a login expires, as on
the real sites: a ground to prove on that cookies are kept and renewed (live.py).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from flask import Flask, Response, redirect, render_template, request
from werkzeug.wrappers import Request

ACCOUNTS = {
    "shopping": ("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": ("admin", "admin1234"),
    "reddit": ("MarvelsGrantMan136", "test1234"),
    "gitlab": ("byteblaze", "hello1234"),
}
"""WebArena's public accounts: (user name, password) of each site that has a login."""
OPEN = ("/static/", "/rest/")
"""What needs no login: style sheets, and an interface that asks for a token of its own."""


@dataclass(frozen=True)
class Field:
    """A field of a login form: its label, its name in the request, its id, and what else its tag carries."""

    label: str
    name: str
    id: str
    placeholder: str = ""
    test_id: str = ""


@dataclass(frozen=True)
class Form:
    """A login form as the original has it. `path`: its address; empty when it shows wherever a login is needed.

    `members`: a page below the site's base that only members see ({user}: the user name). `lasts`: the browser is told
    when the session cookie expires. `link`: name of the header's link to the form.
    """

    title: str
    path: str
    action: str
    home: str
    members: str
    sign_out: str
    cookie: str
    token: str
    user: Field
    password: Field
    button: str
    id: str = "login-form"
    button_id: str = ""
    link: str = ""
    lasts: bool = False


FORMS = {
    "shopping": Form(
        "Customer Login",
        "/customer/account/login/",
        "/customer/account/loginPost/",
        "/customer/account/",
        "/wishlist/",
        "/customer/account/logout/",
        "PHPSESSID",
        "form_key",
        Field("Email", "login[username]", "email"),
        Field("Password", "login[password]", "pass"),
        "Sign In",
        lasts=True,
    ),
    "shopping_admin": Form(
        "Magento Admin",
        "",
        "",
        "/admin/",
        "/dashboard/",
        "/admin/admin/auth/logout/",
        "admin",
        "form_key",
        Field("Username", "login[username]", "username", placeholder="user name"),
        Field("Password", "login[password]", "login", placeholder="password"),
        "Sign in",
        lasts=True,
    ),
    "reddit": Form(
        "Log in",
        "/login",
        "/login_check",
        "/",
        "/user/{user}/account",
        "/logout",
        "PHPSESSID",
        "_csrf_token",
        Field("Username", "_username", "login-username"),
        Field("Password", "_password", "login-password"),
        "Log in",
        link="Log in",
    ),
    "gitlab": Form(
        "Sign in · GitLab",
        "/users/sign_in",
        "/users/sign_in",
        "/",
        "/-/profile",
        "/users/sign_out",
        "_gitlab_session",
        "authenticity_token",
        Field("Username or email", "user[login]", "user_login", test_id="username-field"),
        Field("Password", "user[password]", "user_password", test_id="password-field"),
        "Sign in",
        id="new_user",
        button_id="sign-in-button",
    ),
}


@dataclass
class Visitor:
    """Who holds a session cookie: a member until `until` (time.monotonic), and where to go after logging in."""

    cookie: str = field(default_factory=lambda: secrets.token_hex(16))
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    until: float = 0.0
    back: str = ""


class LoginWall:
    """A WSGI application that lets members through to `app` and shows others the login form of `site`.

    `seconds`: how long a login lasts; the server forgets it whatever the browser was told. `style`: the style sheet.
    """

    def __init__(self, app: Callable, site: str, seconds: float, style: str = "site.css") -> None:
        self.app, self.form, self.account, self.seconds = app, FORMS[site], ACCOUNTS[site], seconds
        self.visitors: dict[str, Visitor] = {}
        self.pages = self._login_pages(site, style)

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        asked = Request(environ)
        login_page = asked.path.rstrip("/") in (self.form.path.rstrip("/"), self.form.sign_out.rstrip("/"))
        if asked.path.startswith(OPEN) or (self._is_member(asked) and (asked.path == "/" or not login_page)):
            return self.app(environ, start_response)
        return self.pages(environ, start_response)

    def expire(self) -> None:
        """End all logins now."""
        for visitor in self.visitors.values():
            visitor.until = 0.0

    def _visitor(self, asked: Request) -> Visitor | None:
        return self.visitors.get(asked.cookies.get(self.form.cookie, ""))

    def _is_member(self, asked: Request) -> bool:
        visitor = self._visitor(asked)
        return visitor is not None and time.monotonic() < visitor.until

    def _login_pages(self, site: str, style: str) -> Flask:
        pages, form = Flask(__name__), self.form

        def show(visitor: Visitor, is_wrong: bool = False) -> Response:
            fields = (form.user, form.password)
            body = render_template(
                "login.html", form=form, fields=fields, site=site, style=style, token=visitor.token, is_wrong=is_wrong
            )
            return self._with_cookie(Response(body), visitor)

        @pages.before_request
        def answer() -> Response:
            visitor = self._visitor(request) or Visitor()
            if request.path.rstrip("/") == form.sign_out.rstrip("/"):
                self.visitors.pop(request.cookies.get(form.cookie, ""), None)
                return redirect(form.path or form.home)
            if self._is_member(request):
                return redirect(form.home)
            if request.method == "POST" and form.user.name in request.form:
                return self._log_in(visitor) or show(visitor, is_wrong=True)
            if not form.path or request.path.rstrip("/") == form.path.rstrip("/"):
                return show(visitor)
            visitor.back = here() if request.method == "GET" else ""
            return self._with_cookie(redirect(form.path), visitor)

        return pages

    def _log_in(self, visitor: Visitor) -> Response | None:
        """Let in who knows the account, on the page that was asked for; None for a wrong password or token."""
        said = (request.form.get(self.form.user.name), request.form.get(self.form.password.name))
        if said != self.account or request.form.get(self.form.token) != visitor.token:
            return None
        member = Visitor(until=time.monotonic() + self.seconds)
        back = visitor.back or (self.form.home if self.form.path else here())
        return self._with_cookie(redirect(back, 303), member, self.seconds if self.form.lasts else None)

    def _with_cookie(self, response: Response, visitor: Visitor, max_age: float | None = None) -> Response:
        """The response with the visitor's session cookie."""
        self.visitors[visitor.cookie] = visitor
        age = None if max_age is None else max(1, round(max_age))
        response.set_cookie(self.form.cookie, visitor.cookie, max_age=age, httponly=True, samesite="Lax")
        return response


def here() -> str:
    """The address of the request on its own host."""
    return "/" + request.full_path.strip("?").lstrip("/")
