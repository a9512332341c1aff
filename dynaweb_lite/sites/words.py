"""Word pools that the replicas' catalogues, people and posts are drawn from. All plain English or common names."""

ADJECTIVES = """
Red Blue Green Black White Golden Silver Amber Copper Ivory Wooden Steel Glass Ceramic Cotton Leather Linen Bamboo
Marble Velvet Small Large Slim Round Square Folding Portable Classic Modern Vintage Soft Heavy Light Quiet Bright
Warm Cool Smart Sturdy Rapid
""".split()
NOUNS = """
Mug Lamp Chair Table Clock Kettle Basket Pillow Blanket Mirror Bottle Backpack Wallet Umbrella Scarf Jacket Gloves
Boots Hat Belt Keyboard Speaker Camera Charger Headset Monitor Printer Router Tripod Tablet Tent Lantern Hammock
Compass Kayak Helmet Racket Skates Bicycle Dumbbell Pan Knife Bowl Plate Spoon Grinder Toaster Blender Whisk Apron
Rake Shovel Hose Planter Trowel Puzzle Drum Guitar Easel Notebook
""".split()
COLLECTIONS = """
Outlet Essentials Seasonal Premium Bundles Classics Trending Clearance Gifts Arrivals Bestsellers Exclusives
""".split()
BRANDS = """
Nordik Alpina Zenco Vertex Lumo Kasa Orbit Pioneer Solace Tundra Meridian Cobalt Everly Harbor Juno Quanta Rivoli
Summit Terra Willow
""".split()
STATUSES = "Complete Pending Processing Canceled Shipped".split()

TITLE_STARTS = """
Lost Found Cheap Best Worst New Old Free Strange Loud Hidden Broken Local Favorite Missing Quick Easy Fresh Wild
Secret Empty Crowded Noisy Friendly Rare Useful Simple Honest Late Early
""".split()
TITLE_MIDDLES = """
keys bike dog cat room job bus train bridge park bakery cafe museum library market garden river tunnel station
theater school gym pool beach recipe movie song book game puppy phone laptop ticket parking wedding concert festival
marathon storm sunset
""".split()
TITLE_ENDS = """
downtown tonight today again advice question wanted review photos update nearby tomorrow story warning ideas help
weekend guide
""".split()
FORUMS = """
boston pittsburgh chicago seattle denver austin portland dallas houston phoenix atlanta miami memphis nashville
oakland baltimore cleveland detroit tampa orlando omaha tucson fresno buffalo
""".split()
USERS = """
mira tomas lena pavel aisha diego hanna yusuf clara ivan nadia oscar priya quinn rosa sven tara umar vera wendell
xenia yara zoltan bruno celia dario elsa farid greta hugo
""".split()
COMMENTS = """Thanks everyone|Good point|Well said|Count me in|Not sure|Very helpful|Same here|Great news|Sounds fun|
I agree|Nice work|Please share|So true|Me too|Keep going|Looks great""".replace("\n", "").split("|")
FIRST_NAMES = "Emma Liam Olivia Noah Ava Ethan Mia Lucas Zoe Daniel Ruby Adam Ella Simon Grace Victor".split()
LAST_NAMES = (
    "Lopez Carter Nguyen Fischer Rossi Novak Silva Okafor Larsen Kim Dubois Haddad Moreau Tanaka Weber Ortiz".split()
)
