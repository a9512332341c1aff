"""`python -m dynaweb_lite`: see cli.py."""

import sys

from dynaweb_lite.cli import main

sys.exit(main())
