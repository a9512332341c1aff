"""Word pools of the code host: names, titles, messages. All plain English; sentences are put together from parts."""

from __future__ import annotations

FIRST_NAMES = """
Ada Bruno Chloe Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Liam Mina Noor Oscar Paula Quinn Ravi Selma Tomas Uma
Viktor Wanda Xavier Yara Zoltan
""".split()
LAST_NAMES = """
Abbott Berger Castillo Dahl Eriksen Fontaine Grant Hassan Ivanov Jensen Kowalski Lindqvist Moretti Nakamura Olsen
Petrov Quist Romero Schmidt Tanaka Ueda Vargas Weber Yilmaz Zhou
""".split()
LOCATIONS = "Lisbon Nairobi Oslo Osaka Boston Kraków Lima Perth Halifax Pune Ghent Tallinn".split()
BIOS = (
    "Builds small tools.|Writes more tests than code.|Maps, mostly.|Likes old computers.|Here for the documentation.|"
    "Weekend maintainer.|Reads every change twice."
).split("|")
GROUP_NAMES = "Northwind Harbor Lanternworks Fieldnotes Bluebell Papermill Stonebridge Quarry".split()
PROJECT_NAMES = """
paper-lantern|Reads feeds and prints them as a small paper
tide-table|Computes tides for a harbor from a list of constants
moss|A static site generator for gardens of notes
quick-ledger|Double-entry bookkeeping in one text file
birdcall|Tells birds apart by their songs
night-train|Plans journeys by night trains
saltmarsh|Sensors and charts for wetlands
copper-kettle|A timer that knows how long tea takes
oak-router|Routes web requests through a tree of handlers
inkwell|A text editor without menus
snowline|Predicts where snow will lie tomorrow
beekeeper|Watches over background jobs
loom-css|A grid for web pages, woven from two properties
fern-db|A key-value store for small machines
kite-deploy|Puts a folder on a server and keeps the last five
river-log|Collects logs from many machines into one stream
cobble|Builds C projects without a build file
starling|Chat for teams, with threads that end
pocket-atlas|Offline maps that fit on a phone
driftwood|Finds files that nobody opened for years
marble-ui|Buttons, fields and dialogs for the web
lichen|A linter for shell scripts
hearth|Controls heating from a calendar
plume|Draws charts as text
tin-can|A protocol for two machines and a wire
wayfinder|Indoor navigation from a floor plan
almanac|Dates of the year with sunrise and moon
sieve|Filters mail by plain sentences
tall-grass|Simulates how meadows grow
ferry|Moves data between databases without downtime
quill|Turns notes into letters
ember|A profiler that draws where time goes
barnacle|Sticks small scripts to the side of big programs
two-stones|A strategy game for a lunch break
plumb-line|Checks that numbers in reports add up
harvest|Reads shopping receipts and sums them
foghorn|Warns when a service gets slow
knot-book|How to tie forty knots, step by step
origami-js|Folds long pages into short ones
wren|A tiny web server for one file
cellar|Keeps track of what is in the pantry
magpie|Saves web pages for later, in full
longhand|Recognises handwriting on forms
switchyard|Sends messages between queues by rules
rain-barrel|Collects weather data from home stations
chalkboard|A shared board for teaching online
""".strip().splitlines()
LABELS = "bug documentation enhancement needs-triage performance question regression wontfix".split()
SYMPTOMS = "Crash|Wrong result|No message|Empty page|Long wait|Double entry|Warning|Lost focus|Broken layout".split("|")
OCCASIONS = (
    "opening|saving|sorting|printing|exporting|searching|renaming|closing|copying|importing|sharing|undoing".split("|")
)
OBJECTS = (
    "an empty list|a large file|two tabs|a long name|an old archive|the first entry|a shared folder|accented text|"
    "a wide table|the settings|a date in winter|a locked row|many tags|a draft|the last page"
).split("|")
WISHES = "Support|Document|Explain|Shorten|Translate|Test|Allow".split("|")
DEEDS = "Simplify|Speed up|Test|Document|Split|Rename|Tidy|Retry|Cache|Log|Validate|Round".split("|")
PARTS = (
    "the parser|the start page|date handling|the importer|error messages|the search index|the command line|the cache|"
    "the settings dialog|keyboard shortcuts|the release script|the test data|table rendering|file watching|"
    "log rotation|the tutorial|sign-in|list filters"
).split("|")
COMMITS = (
    "Fix a typo in|Update|Tidy|Add tests for|Remove dead code from|Rename variables in|Speed up|Handle empty input in|"
    "Move|Explain|Revert a change to|Guard against errors in"
).split("|")
DESCRIPTIONS = (
    "It happens every time here, on two machines.|Steps: start, wait a moment, try again.|Seen since the last release.|"
    "A screenshot would not show much. The log is empty.|I can send a change if you tell me where to start.|"
    "This has been asked before, but I found no answer.|Small thing, but it stops newcomers.|Only with a fresh profile."
).split("|")
REASONS = (
    "Small and on its own.|Part of a series.|The tests are in the second commit.|Comes up in an open issue.|"
    "Makes room for the next change.|Nothing changes for users."
).split("|")
COMMENTS = (
    "I can confirm this.|Does it still happen with the newest release?|Thank you for the report.|Looking into it.|"
    "Could you add the output of the log?|Same here, on another system.|Sounds reasonable to me.|"
    "Please split this in two.|Tests are green now.|One small remark, then it is ready.|Rebased on the main branch."
).split("|")
MILESTONES = "Summer release|Cleaner start|Stable protocol|Fewer surprises|First beta|Long-term support".split("|")
FILES = {
    "src/main.py": 'def main():\n    """Start here."""\n    print("ready")\n',
    "src/config.py": "TIMEOUT_SECONDS = 30\nRETRIES = 3\n",
    "docs/usage.md": "# Usage\n\nStart it, wait for `ready`, then type a command.\n",
    "CONTRIBUTING.md": "# Contributing\n\n- Open an issue first.\n- Keep changes small.\n- Add a test.\n",
    "Makefile": "test:\n\tpython -m unittest\n",
    ".gitignore": "build/\n*.log\n",
}
