"""The map, the encyclopedia and the home page: what they find, show and keep, and what they say to bad input."""

import functools
import json
import random
import re
import sqlite3
from contextlib import contextmanager

import pytest
from lxml import html
from werkzeug.test import Client

from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.scripted import ScriptPolicy
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.webarena.generator import generate_tasks, load_templates
from dynaweb_lite.sites.webarena.homepage import app as homepage
from dynaweb_lite.sites.webarena.homepage import content as homepage_content
from dynaweb_lite.sites.webarena.homepage.calculator import CalculationError, calculate
from dynaweb_lite.sites.webarena.maps import app as maps
from dynaweb_lite.sites.webarena.maps import content as maps_content
from dynaweb_lite.sites.webarena.maps.geo import format_distance, format_time, metres_between, offset
from dynaweb_lite.sites.webarena.maps.picture import View, draw, view_around
from dynaweb_lite.sites.webarena.maps.places import words_of
from dynaweb_lite.sites.webarena.maps.routes import find_route, length_and_time, seconds_for
from dynaweb_lite.sites.webarena.maps.search import find_place, search, where
from dynaweb_lite.sites.webarena.wikipedia import app as wikipedia
from dynaweb_lite.sites.webarena.wikipedia import content as wikipedia_content
from dynaweb_lite.worlds import rollout

CMU, MUSIC_HALL = "/relation/2279034", "/way/154257484"
LANDING = "/wikipedia_en_all_maxi_2022-05/A/User:The_other_Kiwix_guy/Landing"


@functools.cache
def seeded(module, seed):
    return module.make_database(seed).serialize()


def open_database(module, seed=0):
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.deserialize(seeded(module, seed))
    db.row_factory = sqlite3.Row
    return db


def client_of(module, content, seed=0):
    db = open_database(content, seed)

    @contextmanager
    def database():
        with db:
            yield db

    return Client(module.make_app(database))


@pytest.fixture
def map_site():
    return client_of(maps, maps_content)


@pytest.fixture(scope="module")
def map_data():
    return open_database(maps_content)


@pytest.fixture(scope="module")
def wiki():
    return client_of(wikipedia, wikipedia_content)


@pytest.fixture
def home():
    return client_of(homepage, homepage_content)


def page_of(response):
    return html.document_fromstring(response.text)


def texts(response, css):
    return [" ".join(e.text_content().split()) for e in page_of(response).cssselect(css)]


def value(response, name):
    return page_of(response).cssselect(f"[name={name}]")[0].get("value")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Pittsburgh", "Pittsburgh, Allegheny County"),
        ("CMU", "Carnegie Mellon University, 5000"),
        ("401 Shady Ave, Pittsburgh", "401, Shady Avenue, Shadyside"),
        ("Carnegie Mellon Cafe", "Carnegie Mellon Café, 5000"),
        ("portland maine", "Portland, Cumberland County"),
        ("trader joes near 401 Shady Ave", "Trader Joe's, 6343"),
        ("Restaurants NEAR Hunt Library", "The Exchange, 5000"),
        ("gas stations close to CMU", "Sunoco, North Craig Street"),
        ("bars near Carnegie Music Hall", "Hemingway's Cafe, 3911"),
        ("15231 airport", "Pittsburgh International Airport"),
        ("40.4434, -79.9503", "Carnegie Music Hall, 4400"),
    ],
)
def test_the_search_finds_names_addresses_and_what_is_near(map_data, query, first):
    hits = search(map_data, query).places
    assert hits and hits[0]["label"].startswith(first)


def test_what_is_near_comes_in_the_order_of_distance_and_is_of_the_kind(map_data):
    hall = find_place(map_data, "Carnegie Music Hall")
    hits = search(map_data, "bars near Carnegie Music Hall").places
    away = [metres_between(where(hall), where(hit)) for hit in hits]
    assert away == sorted(away) and {hit["kind"] for hit in hits} == {"bar"}  # not the restaurant Back Bar Grill


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Please enter"),
        ("the in", "Please enter"),
        ("Atlantis", "No results found"),
        ("cafes near Atlantis", "No place found for “Atlantis”."),
        ("volcanoes near CMU", "No volcanoes found near Carnegie Mellon University."),
    ],
)
def test_a_search_that_finds_nothing_says_why(map_site, query, message):
    response = map_site.get("/search", query_string={"query": query})
    assert response.status_code == 200 and message in texts(response, "p.empty")[0]


def test_results_come_in_pages_of_ten(map_site):
    seen, url = [], "/search?query=cafes+near+CMU"
    while url:
        response = map_site.get(url)
        seen.append(texts(response, "#search_results a"))
        url = next((a.get("href") for a in page_of(response).cssselect("a.button")), None)
    assert [len(part) for part in seen[:-1]] == [10] * (len(seen) - 1) and 1 < len(seen)
    assert len({link for part in seen for link in part}) == sum(map(len, seen))
    assert texts(map_site.get("/search?query=cafes+near+CMU&page=99"), "p.empty") == ["No results found"]
    assert texts(map_site.get("/search?query=cafes+near+CMU&page=x"), "#search_results a") == seen[0]


def test_an_object_has_a_page_with_its_tags(map_site):
    response = map_site.get(MUSIC_HALL)
    assert texts(response, "#sidebar_content h1") == ["Way: Carnegie Music Hall (154257484)"]
    tags = dict(zip(texts(response, "th"), texts(response, "td"), strict=True))
    assert tags["addr:street"] == "Forbes Avenue" and tags["addr:postcode"] == "15213" and tags["amenity"] == "theatre"
    assert "Location: 40.4434000, -79.9503000" in texts(response, "#sidebar_content p")


@pytest.mark.parametrize(
    "url", ["/node/154257484", "/way/1", "/relation/99999999999999", "/nothing", "/note/999", "/way/x"]
)
def test_what_is_not_there_is_a_page_too(map_site, url):
    response = map_site.get(url)
    assert response.status_code == 404 and texts(response, "h1") == ["File not found"]


def test_states_list_their_borders_and_borders_their_states(map_site):
    response = map_site.get("/relation/165794")
    assert texts(response, ".results a") == [
        "New York–Connecticut border",
        "Connecticut–Massachusetts border",
        "Connecticut–Rhode Island border",
    ]
    border = page_of(response).cssselect(".results a")[2].get("href")
    assert texts(map_site.get(border), ".results a") == [
        "Relation Connecticut (as outer)",
        "Relation Rhode Island (as outer)",
    ]


def directions(client, start, end, engine="fossgis_osrm_foot", **more):
    return client.get("/directions", query_string={"route_from": start, "route_to": end, "engine": engine, **more})


@pytest.mark.parametrize(
    ("end", "summary"),
    [
        ("Carnegie Music Hall", "Distance: 748m. Time: 0:09."),
        ("UPMC Shadyside", "Distance: 1.7km. Time: 0:20."),
        ("CVS, 4610, Centre Avenue", "Distance: 1.4km. Time: 0:17."),
    ],
)
def test_directions_are_those_that_tasks_ask_for(map_site, end, summary):
    response = directions(map_site, "CMU", end)
    assert texts(response, "#routing_summary") == [summary]
    assert value(response, "route_from").startswith("Carnegie Mellon University, 5000, Forbes Avenue, ")
    assert [o.text for o in page_of(response).cssselect("div#content select.routing_engines option")] == [
        "Bicycle (OSRM)",
        "Car (OSRM)",
        "Foot (OSRM)",
    ]
    assert [o.get("selected") is not None for o in page_of(response).cssselect("option")] == [False, False, True]
    assert texts(response, ".turns li")[0].startswith("Start on Forbes Avenue, ")


def test_directions_can_be_reversed_and_asked_for_by_coordinates(map_site):
    there = directions(map_site, "CMU", "Carnegie Music Hall")
    link = next(a.get("href") for a in page_of(there).cssselect("a") if a.text == "Reverse Directions")
    back = map_site.get(link)
    assert texts(back, "#routing_summary") == texts(there, "#routing_summary")
    assert value(back, "route_from") == value(there, "route_to")
    by_points = map_site.get("/directions?engine=fossgis_osrm_foot&route=40.4442,-79.9427;40.4434,-79.9503")
    assert value(by_points, "route_from") == value(there, "route_from")
    assert texts(by_points, "#routing_summary") == texts(there, "#routing_summary")


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("Atlantis", "CMU", "No place found for “Atlantis”."),
        ("CMU", "", "Please fill in both ends of the route."),
        ("CMU", "Carnegie Mellon", "Both ends of the route are the same place."),
    ],
)
def test_directions_that_cannot_be_say_why_and_keep_what_was_typed(map_site, start, end, message):
    response = directions(map_site, start, end)
    assert texts(response, ".error") == [message] and not texts(response, "#routing_summary")
    assert (start == "Atlantis") == (value(response, "route_from") == "Atlantis")


def test_an_empty_form_has_no_complaints_and_goes_by_car(map_site):
    for url in ("/directions", "/directions?engine=teleport", "/directions?route=;", "/directions?route=a"):
        response = map_site.get(url)
        chosen = page_of(response).cssselect("option[selected]")
        assert response.status_code == 200 and [o.text for o in chosen] == ["Car (OSRM)"]
    assert not texts(map_site.get("/directions"), ".error")


def test_distances_and_times_are_written_as_the_original_does():
    assert [format_distance(m) for m in (0, 748.4, 999.4, 1000, 1449, 9960, 10_400, 914_000)] == [
        *("0m", "748m", "999m", "1.0km", "1.4km", "10.0km", "10km", "914km")
    ]
    assert [format_time(s) for s in (0, 29, 31, 540, 3600, 20_820)] == ["0:00", "0:00", "0:01", "0:09", "1:00", "5:47"]
    assert metres_between((0, 0), (0, 1)) == pytest.approx(111_195, abs=1)
    assert metres_between((40, -80), offset((40, -80), 300, 400)) == pytest.approx(500, abs=1)
    assert seconds_for(5_000, "foot") == 3600 and seconds_for(5_000, "bicycle") == 1200


@pytest.mark.parametrize("seed", [0, 1])
def test_every_route_is_longer_than_the_straight_line_and_the_same_way_back(seed):
    db, rng = open_database(maps_content, seed), random.Random(5)
    places = db.execute("SELECT * FROM place").fetchall()
    for start, end in [rng.sample(places, 2) for _ in range(15)]:
        straight = metres_between(where(start), where(end))
        for mode in ("car", "bicycle", "foot"):
            route = find_route(db, start, end, mode)
            assert route.metres >= straight and route.seconds > 0
            assert (route.metres, route.seconds) == length_and_time(db, end, start, mode)
            assert sum(turn.metres for turn in route.turns) == pytest.approx(route.metres)


def test_stored_routes_join_places_that_exist_and_are_no_shorter_than_the_straight_line(map_data):
    places = {p["id"]: p for p in map_data.execute("SELECT * FROM place")}
    rows = map_data.execute("SELECT * FROM route").fetchall()
    for row in rows:
        assert row["metres"] >= metres_between(where(places[row["start"]]), where(places[row["end"]])), dict(row)
    assert len(rows) > 15


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_address_line_leads_to_its_own_place(seed):
    db = open_database(maps_content, seed)
    places = db.execute("SELECT * FROM place").fetchall()
    for place in random.Random(seed).sample(places, 25):
        assert find_place(db, place["label"])["id"] == place["id"]


def test_words_are_compared_without_accents_plurals_and_short_forms():
    assert words_of("5700 Penn Ave.") == words_of("5700 PENN avenue") == ["5700", "penn", "avenue"]
    assert words_of("The Pharmacies of Schiller's Café") == ["pharmacy", "schiller", "cafe"]


def test_a_note_is_written_answered_resolved_and_reopened(map_site):
    response = map_site.post("/note/new?place=way/154257484", data={"text": "  <b>Closed</b> on Mondays  "})
    assert response.status_code == 303
    url = response.headers["Location"]
    opened = map_site.get(url)
    assert texts(opened, ".message") == ["Your note was added."]
    assert texts(opened, ".card p") == ["Opened by mapper_mia on 12 June 2023", "<b>Closed</b> on Mondays"]
    first = texts(map_site.get("/notes"), "#notes li")[0]
    assert "<b>Closed</b> on Mondays" in first and "Carnegie Music Hall, 4400" in first and first.endswith("Unresolved")
    note = url.split("?")[0]
    map_site.post(note, data={"text": "I agree.", "action": "commented"})
    map_site.post(note, data={"text": "", "action": "resolved"})
    done = map_site.get(note)
    assert texts(done, "h1")[0].startswith("Resolved note #") and "I agree." in texts(done, ".card p")
    map_site.post(note, data={"action": "reopened"})
    assert texts(map_site.get(note), "h1")[0].startswith("Unresolved note #")


def test_notes_refuse_what_makes_no_sense(map_site):
    assert texts(map_site.post("/note/new?place=way/154257484", data={}), ".error") == ["Please write something."]
    long = map_site.post("/note/new?place=way/154257484", data={"text": "x" * 3000})
    assert "characters" in texts(long, ".error")[0] and len(texts(long, "textarea")[0]) == 3000
    assert map_site.get("/note/new?place=way/1").status_code == map_site.get("/note/new").status_code == 404
    headings = {n: texts(map_site.get(f"/note/{n}"), "h1")[0] for n in range(1, 19)}
    resolved = next(n for n, heading in headings.items() if heading.startswith("Resolved"))
    before = map_site.get(f"/note/{resolved}").text
    assert map_site.post(f"/note/{resolved}", data={"action": "resolved", "text": "x"}).status_code == 303
    assert map_site.get(f"/note/{resolved}").text == before
    unresolved = next(n for n, heading in headings.items() if heading.startswith("Unresolved"))
    assert texts(map_site.post(f"/note/{unresolved}", data={}), ".error") == ["Please write something."]
    assert map_site.post("/search").status_code == 405


def test_notes_come_in_pages(map_site):
    pages = [texts(map_site.get(f"/notes?page={n}"), "#notes a") for n in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [8, 8, 2, 0] and pages[0][0] == "Note 18"
    assert texts(map_site.get("/notes?page=4"), "p.empty") == ["There are no notes on this page."]


def test_the_picture_shows_pins_a_route_and_its_scale(map_data):
    hall, art = find_place(map_data, "Carnegie Music Hall"), find_place(map_data, "Carnegie Museum of Art")
    ends = [where(hall), where(art)]
    picture = draw(map_data, view_around(ends), ends, ends)
    assert picture.count('class="pin"') == 2 and 'class="path"' in picture and ">A</text>" in picture
    assert 'aria-hidden="true"' in picture and ">Carnegie Music Hall</text>" in picture
    html.fragment_fromstring(picture)
    near, far = View(ends[0], 1000).zoomed(2), View(ends[0], 1000).zoomed(-50)
    assert near.half_metres == 250 and far.half_metres == 3_000_000
    assert "m</text>" in draw(map_data, far)


def test_zooming_keeps_the_question(map_site):
    response = map_site.get("/search?query=cafes+near+CMU")
    link = page_of(response).cssselect("#map a")[0].get("href")
    assert link == "/search?query=cafes+near+CMU&zoom=1"
    nearer = map_site.get(link)
    assert texts(nearer, "#search_results a") == texts(response, "#search_results a")
    assert page_of(nearer).cssselect("#map a")[1].get("href") == "/search?query=cafes+near+CMU&zoom=0"


@pytest.mark.parametrize("content", [maps_content, wikipedia_content, homepage_content])
def test_a_database_is_a_function_of_the_seed_small_and_quick(content):
    first, again, other = (content.make_database(seed).serialize() for seed in (0, 0, 1))
    assert first == again and len(first) < 500_000
    assert (first != other) == (content is not homepage_content)


def test_other_seeds_have_other_places_and_none_of_webarenas():
    zero, one, two = (
        {r["label"] for r in open_database(maps_content, s).execute("SELECT * FROM place WHERE street != ''")}
        for s in (0, 1, 2)
    )
    assert len(zero) > 400 and min(len(one), len(two)) > 200 and not one & two and not zero & one
    assert client_of(maps, maps_content, 1).get(CMU).status_code == 404
    assert search(open_database(maps_content, 1), "Carnegie Mellon University").places == []


def test_the_encyclopedia_begins_where_webarena_does(wiki):
    for url in ("/", "/wikipedia_en_all_maxi_2022-05/", "/wikipedia_en_all_maxi_2022-05/A/"):
        assert wiki.get(url).headers["Location"] == LANDING
    assert "Welcome to Wikipedia" in texts(wiki.get(LANDING), "h1")


def test_articles_are_found_by_title_and_by_other_names(wiki):
    path = "/wikipedia_en_all_maxi_2022-05/A/"
    assert wiki.get(path + "76ers").headers["Location"] == path + "Philadelphia_76ers"
    response = wiki.get(path + "Washington_&_Jefferson_College")
    assert texts(response, "#firstHeading") == ["Washington & Jefferson College"]
    missing = wiki.get(path + "Atlantis")
    assert missing.status_code == 404 and texts(missing, "h1") == ["Not Found"]


@pytest.mark.parametrize(
    ("pattern", "title"),
    [
        ("76ers", "Philadelphia 76ers"),
        ("longest bridge in the western hemisphere", "List of longest bridges in the Western Hemisphere"),
        ("who developed the Nash equilibrium", "Nash equilibrium"),
        ("plane crash Pennsylvania September 11", "United Airlines Flight 93"),
        ("the chair filmed", "The Chair (TV series)"),
        ("Wells Fargo", "Wells Fargo Center"),
    ],
)
def test_the_full_text_search_ranks_what_fits_first(wiki, pattern, title):
    found = texts(wiki.get("/search", query_string={"pattern": pattern}), ".card a")
    assert title in found[:2]


def test_search_results_come_in_pages(wiki):
    first = wiki.get("/search?pattern=Pennsylvania")
    total = int(re.search(r"of (\d+) for", texts(first, "h1")[0])[1])
    last = wiki.get(f"/search?pattern=Pennsylvania&start={total - 1}")
    assert len(texts(first, ".card")) == 10 < total and len(texts(last, ".card")) == 1
    assert texts(first, ".pages a") == ["Next results"] and texts(last, ".pages a") == ["Previous results"]
    beyond = wiki.get("/search?pattern=Pennsylvania&start=5000")
    assert "No more results" in texts(beyond, ".empty")[0]
    assert "No results were found for “zzz”" in texts(wiki.get("/search?pattern=zzz"), ".empty")[0]
    assert texts(wiki.get("/search"), "h1") == ["Search"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_links_lead_to_articles_and_articles_to_places_on_the_map(seed):
    db, places = open_database(wikipedia_content, seed), open_database(maps_content, seed)
    rows = db.execute("SELECT * FROM article").fetchall()
    known = {row["title"] for row in rows} | {row["title"] for row in db.execute("SELECT title FROM redirect")}
    for row in rows:
        lines = [line for _, part in json.loads(row["sections"]) for line in part]
        for target, _ in wikipedia.LINK.findall("\n".join(json.loads(row["text"]) + lines)):
            assert {target, target[:1].upper() + target[1:]} & known, (row["title"], target)
        if row["place"]:
            assert places.execute("SELECT 1 FROM place WHERE id = ?", (row["place"],)).fetchone(), row["title"]
    assert len(rows) > (100 if seed == 0 else 40)


def test_paragraphs_are_escaped_and_dead_links_stay_text():
    made = wikipedia.linked("<i>a</i> [[Game theory|games & <b>]] [[game theory]] [[Nowhere]]", {"Game theory"})
    path = "/wikipedia_en_all_maxi_2022-05/A/Game_theory"
    assert made == (
        f'&lt;i&gt;a&lt;/i&gt; <a href="{path}">games &amp; &lt;b&gt;</a> <a href="{path}">game theory</a> Nowhere'
    )


@pytest.mark.parametrize(
    ("host", "first", "admin"),
    [
        ("http://home.test", "http://shop.test/", "http://shop-admin.test/admin/"),
        ("http://home.localhost:8000", "http://shop.localhost:8000/", "http://shop-admin.localhost:8000/admin/"),
    ],
)
def test_the_home_page_links_all_sites_from_where_it_is(home, host, first, admin):
    links = [a.get("href") for a in page_of(home.get("/", base_url=host)).cssselect(".card a")]
    assert len(links) == 6 and links[:2] == [first, admin]


@pytest.mark.parametrize(
    ("text", "result"),
    [("1 + 2 * 3", "7"), ("(1+2)*3", "9"), ("-2^2", "-4"), ("2^3^2", "512"), ("10/4", "2.5"), ("0.1+0.2", "0.3")]
    + [("1/3", "0.333333333333"), ("5%", "0.05"), ("2 - -3", "5"), ("8/2/2", "2"), ("2^-2", "0.25")],
)
def test_the_calculator_calculates(home, text, result):
    assert calculate(text) == result
    assert texts(home.get("/calculator.html", query_string={"expression": text}), "#result") == [result]


@pytest.mark.parametrize(
    "text", ["1/0", "0^-1", "2^0.5", "9^9^9", "1+", "(1", "1)", "()", "1 2", "x", "__import__('os')", "1" * 200]
)
def test_the_calculator_says_what_it_cannot_read(home, text):
    with pytest.raises(CalculationError):
        calculate(text)
    response = home.get("/calculator.html", query_string={"expression": text})
    assert response.status_code == 200 and texts(response, ".error") and not texts(response, "#result")


def test_the_scratchpad_keeps_what_is_written(home):
    assert texts(home.get("/scratchpad.html"), "textarea") == [""]
    home.post("/scratchpad.html", data={"text": "</textarea><b>x</b>"})
    assert texts(home.get("/scratchpad.html?saved=1"), "textarea") == ["</textarea><b>x</b>"]
    assert home.get("/nothing").status_code == 404 and home.get("/password.html").status_code == 200


@pytest.mark.parametrize(("site", "templates", "kinds"), [("map", 9, 3), ("wikipedia", 4, 2)])
def test_generated_tasks_are_solved_by_their_experts_and_by_no_idler(site, templates, kinds):
    made = load_templates(site)
    assert len(made) == templates and len({t.kind for t in made}) == kinds and 1 <= sum(t.held_out for t in made) <= 2
    tasks = generate_tasks(1, sites=(site,))
    by_template = {t.name: [task for task in tasks if task.extra["template"] == t.name] for t in made}
    assert min(map(len, by_template.values())) >= 8
    sample = [part[0] for part in by_template.values()]
    web = DirectWeb(SiteServer(1, ground="webarena"))
    for scripts, reward in ([task.extra["script"] for task in sample], 1.0), ([("stop []",)] * len(sample), 0.0):
        policy = ScriptPolicy({task.task_id: s for task, s in zip(sample, scripts, strict=True)})
        assert {e.task_id for e in rollout(policy, web, sample, 12) if e.reward != reward} == set()
        assert policy.errors == {}


@pytest.mark.parametrize("seed", [0, 1])
def test_no_page_is_longer_than_what_an_agent_is_shown(seed):
    web = DirectWeb(SiteServer(seed, ground="webarena"), max_elements=200)
    task = generate_tasks(seed, sites=("map",))[0]
    town, place = ("Pittsburgh", "Carnegie Mellon University") if seed == 0 else ("", "")
    db = open_database(maps_content, seed)
    town = town or db.execute("SELECT name FROM place WHERE kind = 'town'").fetchone()[0]
    place = place or db.execute("SELECT name FROM place WHERE kind = 'university'").fetchone()[0]
    urls = [f"http://map.test/{path}" for path in ("", "notes", "directions", "note/1", "about")]
    urls += [f"http://map.test/search?query=restaurants+near+{place}", f"http://map.test/search?query={town}"]
    urls += [f"http://map.test/directions?route_from={town}&route_to={place}", "http://wiki.test/", "http://home.test/"]
    urls += [f"http://wiki.test/wikipedia_en_all_maxi_2022-05/A/{town}", "http://wiki.test/search?pattern=town"]
    web.reset([task])
    for url in urls:
        assert 5 < len(web.step([f"goto [{url.replace(' ', '%20')}]"])[0].observation.elements) <= 60, url
