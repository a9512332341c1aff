"""Light replicas of WebArena's sites: server-rendered pages over SQLite, seeded, reset in milliseconds."""

from dynaweb_lite.sites.server import SiteServer

__all__ = ["SiteServer"]
