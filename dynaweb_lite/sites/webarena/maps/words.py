"""Word pools that the map's invented towns, streets and businesses are named from."""

from __future__ import annotations

TOWN_STARTS = (
    "Ash Birch Brook Cedar Clear Copper East Elm Fair Fern Glen Green Hart High Iron Lake Maple Mill North Oak Rock "
    "Rose Salt Sand Silver Spring Stone Storm Thorn West White Willow Winter"
).split()
TOWN_ENDS = (
    "bridge brook bury dale field ford gate ham haven hollow hurst land mere mont port ridge ton vale wick wood".split()
)
STATES = (
    "Alderland Brennick Caldoria Dunmere Estrava Farholm Galloway Harrowen Ivermont Jorland Kestria Lowmark".split()
)
RIVERS = "Amber Bright Cold Drum Heron Kettle Linden Marl Otter Quill Reed Swan Tamar Wren".split()
QUARTERS = (
    "Bellview|Castle Hill|Cobble Row|Dockside|East End|Ferry Point|Garden Heights|Harbor Side|Kings Cross|Lower Mills|"
    "Market Ward|Mason Hill|New Quay|North Bank|Old Town|Orchard Park|Railway Yard|Saint Anne|Tannery|Temple Row|"
    "Upper Green|Weavers Yard|Windmill Hill|Wool Quarter"
).split("|")
STREETS = (
    "Acorn Arbor Banner Barley Beacon Bell Canal Chapel Chestnut Church Clover College Cooper Crane Cross Dover Ferry "
    "Foundry Garden Gilbert Granite Grove Harvest Hill Hudson Juniper Kiln Lantern Laurel Linden Locust Market Meadow "
    "Mercer Monroe Mulberry Orchard Palmer Park Pearl Pine Poplar Quarry Ridge River School Spruce Station Summit "
    "Sycamore Tanner Union Valley Vine Walnut Water Weaver"
).split()
STREET_ENDS = "Street Avenue Road Lane Street Avenue".split()
SURNAMES = (
    "Abbott Barlow Castell Denham Ellery Farrow Garrick Hollis Ingram Jarvis Kemble Lorimer Marden Norwood Osgood "
    "Penrose Quincy Redfern Sheldon Tolliver Underhill Vickers Wexley Yardley Ashcroft Bramwell Colby Dunstan Everard "
    "Fenwick"
).split()
FIRST_NAMES = (
    "Adela Bernard Clara Dorothea Edwin Flora Gideon Harriet Ivor Josephine Leopold Mabel Nathan Ottilie Percy "
    "Rosalind Silas Theodora Ulric Violet Walter Winifred"
).split()
ADJECTIVES = (
    "Amber Blue Brass Bright Copper Crimson Curious Golden Green Happy Hidden Iron Little Lucky Merry Old Quiet Red "
    "Rusty Silver Sleepy Tall Velvet Wandering White Wild"
).split()
THINGS = (
    "Acorn Anchor Badger Bell Bramble Candle Compass Crow Fern Finch Fox Hare Hearth Heron Kettle Lantern Lark Magpie "
    "Nutmeg Otter Owl Pear Pepper Plum Rook Saffron Spoon Swallow Thistle Wren"
).split()
CUISINES = "american asian breakfast french greek indian italian korean mexican seafood thai vegetarian".split()
CHAINS = {
    "supermarket": ("Harvest Lane", "Corner Basket", "Field and Larder"),
    "pharmacy": ("Greenleaf Pharmacy", "Wellspring Pharmacy", "Mortar and Pestle"),
    "fuel": ("Torch Fuel", "Meridian Gas", "Volta"),
    "bank": ("First Harbor Bank", "Union Mills Bank", "Citadel Savings"),
}
HOURS = (
    "Mo-Su 07:00-22:00",
    "Mo-Fr 08:00-18:00",
    "Mo-Sa 09:00-19:00",
    "Tu-Su 11:00-21:30",
    "We-Su 10:00-17:00",
    "Mo-Fr 06:30-15:00",
    "24/7",
)
