"""Data from elsewhere: trees of WebArena and BrowserGym, NNetNav's rows, plain rows, and what cleaning drops."""

import json
import random

import pytest
from datasets import Dataset

from dynaweb_lite.actions import Action, check_action, parse_action
from dynaweb_lite.change_forms import FORMS
from dynaweb_lite.cleaning import Reason
from dynaweb_lite.importers import ImportFailure, import_nnetnav, import_transitions, read_rows
from dynaweb_lite.nnetnav import read_entry, read_history, read_output, read_prompt
from dynaweb_lite.observation import ObservationError, parse_observation
from dynaweb_lite.state_change import apply, diff
from dynaweb_lite.trajectory import Transition, load_trajectories, save_trajectories
from dynaweb_lite.webarena_tree import read_tree
from dynaweb_lite.world_model import training_examples

SEARCH = """Tab 0 (current): Find | Tab 1: Wiki

[16619] RootWebArea 'Find' focused: True
\t[16712] link 'Home'
\t\t[16752] StaticText 'Home'
\t[16721] HeaderAsNonLandmark ''
\t\t[16753] link 'Boards'
\t[16762] searchbox 'Search' required: False
\t\t[17267] StaticText'micro mug'
\t[16640] button 'Ann' hasPopup: menu expanded: False
\t[16742] checkbox 'Hide' checked: true
\t[2110] textbox 'Comment' required: True describedby: help_1 help_2
\t[166] combobox ''
\t\t[167] option 'Bus' selected: False
\t\t[168] option 'Car' selected: True
\t[17078] link'science'
\t[50] link 'Bob's house' hasPopup: menu
\t[51] heading "It's \\"odd\\""
\t[52] heading 'Two
lines'
\t[54] heading 'Never closed
\t[53] StaticText 'end'
\t[55] slider 'Size' valuetext:  orientation: horizontal"""
SEARCH_AS_OURS = f"""Tab 0 (current): Find | http://forum.test/search
Tab 1: Wiki |{" "}
[1] link 'Home'
[2] link 'Boards'
[3] searchbox 'Search' value: 'micro mug'
[4] button 'Ann' expanded: False
[5] checkbox 'Hide' checked: True
[6] textbox 'Comment' value: '' required: True
[7] combobox '' value: 'Car'
\t[8] option 'Bus'
\t[9] option 'Car' selected: True
[10] link 'science'
[11] link "Bob's house"
[12] heading 'It\\'s "odd"'
[13] heading 'Two lines'
[14] StaticText 'end'
[15] slider 'Size' value: ''"""
FLIGHTS = """RootWebArea 'Flights', focused, url='https://fly.test/'
\t[149] banner '', visible
\t\t[160] button 'Menu', clickable, visible, expanded=False
\t\t\t[161] image '', visible
\t\t[189] link 'Travel', visible, url='http://x.test/a?expanded=True'
\t\t\tStaticText 'Travel'
\t[570] combobox 'Where from?' value='Montreal, QC', clickable, visible, hasPopup='menu', expanded=False
\t\tStaticText 'Montreal, QC'
\t[622] button 'Swap', visible, disabled=True
\t[700] textbox 'Mail', required
\t[12] generic, clickable
\tgeneric, clickable
this line is no element"""
FLIGHTS_AS_OURS = """Tab 0 (current): Flights | https://fly.test/
[1] button 'Menu' expanded: False
[2] link 'Travel'
[3] combobox 'Where from?' value: 'Montreal, QC' expanded: False
[4] button 'Swap' disabled: True
[5] textbox 'Mail' value: '' required: True"""


def test_a_webarena_tree_reads_as_one_of_our_pages():
    page = read_tree(SEARCH, "http://forum.test/search")
    assert page.observation.text == SEARCH_AS_OURS and parse_observation(SEARCH_AS_OURS) == page.observation
    assert page.unreadable_lines == 1  # the heading that never closes
    assert page.ids["16712"] == page.ids["16752"] == 1  # the text of a link is the link
    assert page.ids["17267"] == page.ids["16762"] == 3 and page.hidden == {"16721"}


def test_a_browsergym_tree_reads_as_one_of_our_pages():
    page = read_tree(FLIGHTS)
    assert page.observation.text == FLIGHTS_AS_OURS and page.unreadable_lines == 1
    assert page.ids == {"160": 1, "161": 1, "189": 2, "570": 3, "622": 4, "700": 5}
    assert page.hidden == {"149", "12"}
    assert read_tree(FLIGHTS, "http://given.test/").observation.url == "http://given.test/"


def test_a_page_of_ours_is_taken_as_it_is():
    page = read_tree(SEARCH_AS_OURS, "http://other.test/", "Other")
    assert page.observation.text == SEARCH_AS_OURS and page.ids["15"] == 15 and not page.hidden


@pytest.mark.parametrize("text", ["", "\n\n", "The page did not load", "RootWebArea 'Blank', focused", "[1] generic"])
def test_what_shows_no_element_is_no_page(text):
    with pytest.raises(ObservationError):
        read_tree(text)


def test_a_page_of_absurd_depth_is_a_page():
    lines = ["\t" * depth + f"[{depth}] link 'level {depth}'" for depth in range(1, 1100)]
    page = read_tree("\n".join(lines), max_elements=2000)
    assert len(page.observation.elements) == 1099 and page.observation.elements[-1].depth < 150


def test_a_long_page_is_cut_and_its_ids_still_lead_to_its_elements():
    lines = [f"\t[{1000 + i}] StaticText 'line {i}'" for i in range(50)] + ["\t[9] button 'Buy'"]
    page = read_tree("[1] RootWebArea 'Long' focused: True\n" + "\n".join(lines), max_elements=10)
    assert page.observation.cut == 41 and page.observation.element(page.ids["9"]).name == "Buy"
    assert "1049" in page.hidden and page.observation.element(page.ids["1003"]).name == "line 3"


def test_random_trees_always_read_back_and_keep_their_ids():
    rng, words = random.Random(0), ["", "Red mug", "it's", 'say "hi"', "both ' and \"", "a\\nb", "5 | 6", "é—", "[7]"]
    rows = ("link", "button", "heading", "StaticText", "textbox", "list", "combobox", "option", "img", "LabelText")
    for _ in range(200):
        lines, depth, names = ["[1] RootWebArea 'T' focused: True"], 1, {}
        for key in rng.sample(range(2, 9999), 12):
            depth = rng.randint(1, min(depth + 1, 4))
            role, name = rng.choice(rows), rng.choice(words)
            names[str(key)] = (role, " ".join(name.split()))
            lines.append("\t" * depth + f"[{key}] {role} {name!r}" + rng.choice(["", " required: True", " x: a b"]))
        try:
            page = read_tree("\n".join(lines), "http://a.test/")
        except ObservationError:
            continue
        assert parse_observation(page.observation.text) == page.observation and page.unreadable_lines == 0
        assert set(page.ids) | page.hidden == set(names)
        for element in page.observation.elements:
            assert (element.role, element.name) in [names[key] for key, i in page.ids.items() if i == element.id]


# NNetNav


def tree(title, *elements):
    lines = [f"\t[{key}] {rest}" for key, rest in elements]
    return "\n".join([f"RootWebArea '{title}', focused, url='http://shop.test/{title.lower()}'", *lines])


HOME = tree("Home", (7, "link 'Mugs', visible"), (8, "searchbox 'Find'"), (9, "list ''"))
MUGS = tree("Mugs", (41, "link 'Red mug'"), (42, "link 'Home'"))
MUG = tree("Mug", (91, "heading 'Red mug'"), (92, "button 'Buy'"))
FENCE = "```"


def row(task, page, history, action, goal="Buy the red mug.", thought="Let's think.\n", **changes):
    """A row as NNetNav has it: Llama's special tokens around a system turn, the page, and the actions before."""
    done = "\n".join(f"{i}: {entry}" for i, entry in enumerate(["None", *history], 1))
    url = page.split("url='")[-1].split("'")[0]
    prompt = (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\nYou act on pages.\nThe objective: see below.\n"
        f"<|eot_id|><|start_header_id|>user<|end_header_id|>\nOBSERVATION:\n{page}\nURL: {url}\n"
        f"OBJECTIVE: {goal}\nPREVIOUS ACTIONS:\n{done}\n<|eot_id|>"
    )
    output = (
        f"<|start_header_id|>assistant<|end_header_id|>\n{thought}In summary, the next action I will perform is "
        f"{FENCE}{action}{FENCE}\n<|eot_id|>"
    )
    return {"prompt": prompt, "output": output, "task_name": task, **changes}


TO_MUGS, TO_MUG = "click [7] where [7] is link 'Mugs'", "click [41] where [41] is link 'Red mug'"
WHOLE = [
    row("shop_1", HOME, [], "click [7]"),
    row("shop_1", MUGS, [TO_MUGS], "click [41]"),
    row("shop_1", MUG, [TO_MUGS, TO_MUG], "stop [$12.50]"),
]


def reasons(cleaned):
    assert cleaned.rows == len(cleaned.transitions) + cleaned.dropped.total()
    return dict(cleaned.dropped)


def test_a_task_becomes_transitions_and_an_expert_trajectory(tmp_path):
    cleaned = import_nnetnav(WHOLE)
    assert reasons(cleaned) == {Reason.STOP: 1} and cleaned.corrected == 0
    home, mugs, mug = (read_tree(text).observation for text in (HOME, MUGS, MUG))
    assert cleaned.transitions == [Transition(home, "click [1]", mugs), Transition(mugs, "click [1]", mug)]
    [trajectory] = cleaned.trajectories
    assert (trajectory.task_id, trajectory.goal, trajectory.source) == ("shop_1", "Buy the red mug.", "expert")
    assert (trajectory.reward, trajectory.terminated, trajectory.answer) == (1.0, True, "$12.50")
    assert [step.thought for step in trajectory.steps] == ["Let's think."] * 3
    assert trajectory.transitions() == cleaned.transitions and trajectory.provenance["rows"] == [1, 3]
    save_trajectories(tmp_path / "t.jsonl", cleaned.trajectories)
    assert load_trajectories(tmp_path / "t.jsonl") == cleaned.trajectories


def test_imported_transitions_teach_in_both_forms():
    cleaned = import_nnetnav(WHOLE)
    for t in cleaned.transitions:
        assert apply(t.observation, diff(t.observation, t.next_observation)) == t.next_observation
        assert not check_action(parse_action(t.action), t.observation)
    for form in FORMS.values():
        assert len(training_examples(cleaned.transitions, form=form)) >= 2


def test_sections_are_read_in_any_order_and_without_special_tokens():
    sections = read_prompt(
        "OBJECTIVE: Go.\nPREVIOUS ACTIONS:\n1: None\nOBSERVATION:\n\t[1] link 'URL: x'\nURL: http://a/"
    )
    assert sections["OBJECTIVE"] == "Go." and sections["OBSERVATION"] == "\t[1] link 'URL: x'"
    assert sections["URL"] == "http://a/" and list(sections) == ["OBJECTIVE", "PREVIOUS ACTIONS", "OBSERVATION", "URL"]
    text = WHOLE[1]["prompt"] + "<|start_header_id|>assistant<|end_header_id|>\n"
    assert read_prompt(text)["PREVIOUS ACTIONS"] == f"1: None\n2: {TO_MUGS}"
    assert read_prompt("nothing of it") == {}
    quoting = read_prompt("OBSERVATION:\nx\nOBJECTIVE: y\nPREVIOUS ACTIONS:\n1: it said\nOBSERVATION: z")
    assert (quoting["OBSERVATION"], quoting["PREVIOUS ACTIONS"]) == ("x", "1: it said\nOBSERVATION: z")


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("1: None", ()),
        ("None", ()),
        ("", ()),
        ("1: None\n2: go_back\n3: scroll [down]", ("go_back", "scroll [down]")),
        (
            '1: None\n2: The previous prediction was "a\n\n7: b". Wrong.\n3: go_back',
            ('The previous prediction was "a 7: b". Wrong.', "go_back"),
        ),
        ("go_back\nscroll [up]", ("go_back", "scroll [up]")),
        ("1: go_back", ("go_back",)),
    ],
)
def test_histories(text, entries):
    assert read_history(text) == entries


@pytest.mark.parametrize(
    ("entry", "action"),
    [
        ("click [5] where [5] is link 'Where [5] is'", Action("click", 5)),
        ("hover [5] where [5] is ", Action("hover", 5)),
        ("type [5] [a [b] c ] where [5] is searchbox 'Find'", Action("type", 5, "a [b] c", True)),
        ("type [5] [a] where [5] is searchbox 'Find'", Action("type", 5, "a", False)),
        ("type [5] [a] [0]", Action("type", 5, "a", False)),
        ("page_focus [1]", Action("tab_focus", text="1")),
        ("go_back", Action("go_back")),
        ("none", None),
        ('Attempt to perfom "click" on element "[5]" but no matching element found.', None),
        (f'The previous prediction you issued was "{FENCE}click [5]{FENCE}". However, the format was incorrect.', None),
        ("", None),
    ],
)
def test_entries_of_a_history(entry, action):
    assert read_entry(entry) == action


def test_outputs():
    assert read_output("I think.\nSo. In summary, I do ```click [4]```.") == (Action("click", 4), "I think. So.")
    assert read_output("```go_back```") == (Action("go_back"), "")
    assert read_output("I do not know.") == (None, "I do not know.")


def test_the_history_tells_what_was_done():
    other = "click [42] where [42] is link 'Home'"
    rows = [WHOLE[0], row("shop_1", MUGS, [TO_MUGS], "click [41]"), row("shop_1", HOME, [TO_MUGS, other], "stop []")]
    cleaned = import_nnetnav(rows)
    assert [t.action for t in cleaned.transitions] == ["click [1]", "click [2]"] and cleaned.corrected == 1
    assert [step.thought for step in cleaned.trajectories[0].steps] == ["Let's think.", "", "Let's think."]
    typed = "type [8] [blue mug ] where [8] is searchbox 'Find'"
    rows = [row("t", HOME, [], "type [8] [blue  mug] [0]"), row("t", MUGS, [typed], "stop []")]
    [transition] = import_nnetnav(rows).transitions
    assert transition.action == "type [2] [blue mug] [1]"
    rows = [row("t", HOME, [], "I give up"), row("t", MUGS, [TO_MUGS], "stop []")]
    assert [t.action for t in import_nnetnav(rows).transitions] == ["click [1]"]


OTHER_TASK = row("another", MUGS, [], "stop []")
NOWHERE = "click [99] where [99] is link 'X'"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([None, "text", 7], {Reason.NOT_JSON: 3}),
        ([{}], {Reason.HALF_ROW: 1}),
        ([WHOLE[0] | {"output": None}], {Reason.HALF_ROW: 1}),
        ([{"prompt": WHOLE[0]["prompt"], "task_name": "t"}], {Reason.HALF_ROW: 1}),
        ([WHOLE[0] | {"task_name": ""}], {Reason.HALF_ROW: 1}),
        ([WHOLE[0] | {"prompt": ["a", "list"]}], {Reason.HALF_ROW: 1}),
        ([WHOLE[0] | {"prompt": ""}, WHOLE[0] | {"prompt": "URL:"}], {Reason.HALF_ROW: 2}),
        ([WHOLE[0] | {"prompt": "OBSERVATION:\n[1] link 'a'"}], {Reason.HALF_ROW: 1}),
        ([*WHOLE, WHOLE[1]], {Reason.STOP: 1, Reason.DUPLICATE: 1}),
        ([row("t", "", [], "click [7]")], {Reason.NO_PAGE: 1}),
        (
            [row("t", HOME, [], "click [7]"), row("t", "Error 500", [TO_MUGS], "go_back")],
            {Reason.NO_NEXT: 1, Reason.NO_PAGE: 1},
        ),
        ([row("t", HOME, [], "wait")], {Reason.UNPARSABLE: 1}),
        ([row("t", HOME, [], "click [99]")], {Reason.ABSENT: 1}),
        ([row("t", HOME, [], "click [9]")], {Reason.HIDDEN: 1}),
        ([row("t", HOME, [], "click [7]")], {Reason.NO_NEXT: 1}),
        ([WHOLE[0], OTHER_TASK], {Reason.NO_NEXT: 1, Reason.STOP: 1}),
        (WHOLE[:1] + WHOLE[2:], {Reason.NO_NEXT: 1, Reason.STOP: 1}),
        (
            WHOLE[:1] + [row("shop_1", MUGS, [TO_MUGS], "stop []", goal="Sell it.")],
            {Reason.OBJECTIVE: 1, Reason.STOP: 1},
        ),
        (WHOLE[:2] + [row("shop_1", MUG, ["go_back", TO_MUG], "stop []")], {Reason.HISTORY: 1, Reason.STOP: 1}),
        (WHOLE[:1] + [row("shop_1", MUGS, [NOWHERE], "stop []")], {Reason.HISTORY: 1, Reason.STOP: 1}),
        ([row("t", HOME, [], "click [99]"), row("t", MUGS, [NOWHERE], "stop []")], {Reason.ABSENT: 1, Reason.STOP: 1}),
        (
            WHOLE[:1] + [row("shop_1", HOME, ['The previous prediction you issued was "x".'], "stop []")],
            {Reason.REFUSED: 1, Reason.STOP: 1},
        ),
        ([WHOLE[0], row("shop_1", HOME, ["stop ['']"], "stop []")], {Reason.STOP: 2}),
        (WHOLE[:1] + [row("shop_1", HOME, ["stop ['']"], "go_back")], {Reason.STOP: 1, Reason.NO_NEXT: 1}),
    ],
)
def test_every_row_that_teaches_nothing_is_counted_under_its_reason(rows, expected):
    cleaned = import_nnetnav(rows)
    assert reasons(cleaned) == expected
    # a whole attempt is one of which no row is missing or bad: the repeated task, and the other task, of one step
    assert len(cleaned.trajectories) == int(Reason.DUPLICATE in expected or rows[-1] == OTHER_TASK)


def test_rows_may_come_in_any_order_and_a_task_twice():
    mixed = [WHOLE[2], row("shop_2", HOME, [], "stop []"), WHOLE[0], WHOLE[1]]
    cleaned = import_nnetnav(mixed)
    assert reasons(cleaned) == {Reason.STOP: 2} and len(cleaned.trajectories) == 2
    assert cleaned.transitions == import_nnetnav(WHOLE).transitions
    again = [r | {"output": r["output"].replace("Let's think.", "Once more.")} for r in WHOLE]
    twice = import_nnetnav(WHOLE + again)
    assert reasons(twice) == {Reason.STOP: 2} and len(twice.trajectories) == 2 and len(twice.transitions) == 4
    assert twice.trajectories[1].steps[0].thought == "Once more."


def test_the_table_adds_up_and_says_where_it_saw_what():
    cleaned = import_nnetnav([*WHOLE, None, {}, {"prompt": "x"}])
    table = cleaned.table()
    assert table[0] == {"outcome": "kept: transitions", "n": 2, "share": 0.3333, "first_row": None}
    assert {r["outcome"]: (r["n"], r["first_row"]) for r in table[1:-1]} == {
        "not JSON": (1, 4),
        "half a row: a field is missing": (2, 5),
        "stop: changes no page": (1, 3),
    }
    assert table[-1]["n"] == 6 == sum(r["n"] for r in table[:-1])
    text = str(cleaned).split("\n")
    assert len({len(line) for line in text[1:-3]}) <= 2 and "1 whole trajectories" in text[-1]
    assert any(line.split("  ")[0] == "not JSON" and line.endswith(" 4") for line in text)
    assert "0.0%" in str(import_nnetnav([]))


# Sources


def write(path, rows, tail=""):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows) + tail, encoding="utf-8")
    return path


def test_every_kind_of_source_gives_the_same(tmp_path):
    expected = import_nnetnav(WHOLE).transitions
    folder = tmp_path / "somewhere"
    folder.mkdir()
    write(folder / "train.jsonl", WHOLE)
    repository = tmp_path / "like_on_the_hub"
    repository.mkdir()
    Dataset.from_list(WHOLE).to_parquet(repository / "train.parquet")
    files = [folder / "train.jsonl", str(folder / "train.jsonl"), repository / "train.parquet"]
    sources = [*files, folder, str(repository), iter(WHOLE)]
    for source in [*sources, Dataset.from_list(WHOLE), Dataset.from_list(WHOLE).to_iterable_dataset()]:
        assert import_nnetnav(source).transitions == expected, source
    assert import_nnetnav(folder, limit=2).rows == 2


def test_a_damaged_file_is_read_to_its_end(tmp_path):
    path = write(tmp_path / "rows.jsonl", WHOLE, '\n[1, 2]\n"text"\n' + "[" * 100_000 + '\n{"prompt": "cut')
    cleaned = import_nnetnav(path)
    assert reasons(cleaned) == {Reason.STOP: 1, Reason.NOT_JSON: 4} and len(cleaned.transitions) == 2
    path.write_bytes(b"\xff\xfe\n" + path.read_bytes())
    assert reasons(import_nnetnav(path))[Reason.NOT_JSON] == 5
    (tmp_path / "half").mkdir()
    path.rename(tmp_path / "half" / "train-0.jsonl")
    assert reasons(import_nnetnav(tmp_path / "half"))[Reason.NOT_JSON] == 5


def test_half_a_row_in_a_data_set_is_counted(tmp_path):
    halves = [WHOLE[0] | {"output": None}, *WHOLE[1:]]
    assert reasons(import_nnetnav(Dataset.from_list(halves))) == {Reason.HALF_ROW: 1, Reason.STOP: 1}
    assert reasons(import_nnetnav(Dataset.from_list([{"text": "x"}]))) == {Reason.HALF_ROW: 1}


def test_a_source_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ImportFailure, match="no file .*gone.jsonl"):
        import_nnetnav(tmp_path / "gone.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportFailure, match="empty"):
        import_nnetnav(tmp_path / "empty")
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(ImportFailure, match="parquet"):
        list(read_rows(tmp_path / "bad.parquet"))


# Plain rows


def plain(before=HOME, action="click [7]", after=MUGS, **more):
    return {"observation": before, "action": action, "next_observation": after, **more}


def test_plain_rows_become_transitions(tmp_path):
    rows = [plain(), plain(SEARCH, "type('2110', 'x')", SEARCH, url="http://forum.test/search", goal="Any")]
    rows[1]["action"] = "fill('2110', 'nice')"
    cleaned = import_transitions(write(tmp_path / "rows.jsonl", rows))
    assert reasons(cleaned) == {} and cleaned.unreadable_lines == 2
    first, second = cleaned.transitions
    assert first == import_nnetnav(WHOLE).transitions[0]
    assert second.observation.text == SEARCH_AS_OURS and second.action == "type [6] [nice] [0]"
    assert second.next_observation.url == "http://forum.test/search"  # the same title, and no other address known


def test_addresses_and_titles_of_plain_rows():
    bare = "[5] link 'A'"
    [t] = import_transitions([plain(bare, "click [5]", bare, url="http://a/", title="A", next_title="B")]).transitions
    assert (t.observation.title, t.observation.url) == ("A", "http://a/")
    assert (t.next_observation.title, t.next_observation.url) == ("B", "")
    [t] = import_transitions([plain(bare, "click [5]", MUG, next_url="http://b/")]).transitions
    assert t.next_observation.url == "http://b/"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([None], {Reason.NOT_JSON: 1}),
        ([{"observation": HOME, "action": "click [7]"}], {Reason.HALF_ROW: 1}),
        ([plain(after=None)], {Reason.HALF_ROW: 1}),
        ([plain(action={"click": 7})], {Reason.HALF_ROW: 1}),
        ([plain(), plain(goal="again")], {Reason.DUPLICATE: 1}),
        ([plain(before="")], {Reason.NO_PAGE: 1}),
        ([plain(after="a blank page")], {Reason.NO_PAGE: 1}),
        ([plain(action="hum")], {Reason.UNPARSABLE: 1}),
        ([plain(action="click [99]")], {Reason.ABSENT: 1}),
        ([plain(action="click [9]")], {Reason.HIDDEN: 1}),
        ([plain(action="stop [x]")], {Reason.STOP: 1}),
    ],
)
def test_plain_rows_that_teach_nothing_are_counted_under_their_reason(rows, expected):
    assert reasons(import_transitions(rows)) == expected
