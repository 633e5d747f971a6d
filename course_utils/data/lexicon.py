"""The words of `everyday.py`, English and German, with what the grammar must know of each.

Tables are texts, one word a line, to be read like a small dictionary. A German word with a stroke has a synonym.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Noun:
    """A noun with its forms; `weak` is its form in all cases of the singular but the first, where it has one."""

    one: str
    many: str
    singular: str
    gender: str  # m, f or n
    plural: str
    weak: str = ""
    kind: str = ""

    @property
    def key(self) -> str:
        """The English word stands for the pair."""
        return self.one


@dataclass(frozen=True)
class Adjective:
    """An adjective; the stem takes the endings."""

    english: str
    german: str
    stem: str


@dataclass(frozen=True)
class Verb:
    """A verb: English base, third person and past; German infinitive, forms of ich, du and er, participle."""

    base: str
    third: str
    past: str
    infinitive: str
    ich: str
    du: str
    er: str
    participle: str
    perfect: str = "haben"  # or sein
    prefix: str = ""  # of a separable verb: its other forms are without it
    objects: tuple[str, ...] = ()  # the kinds of nouns that it may have as its object; none: it has none
    animals: bool = False  # whether animals do it
    synonym: Verb | None = None

    @property
    def whole(self) -> str:
        """The infinitive in one word."""
        return self.prefix + self.infinitive


_NOUNS = {
    "person": """
        man men Mann m Männer
        woman women Frau f Frauen
        child children Kind n Kinder
        boy boys Junge m Jungen Jungen
        girl girls Mädchen n Mädchen
        teacher teachers Lehrer m Lehrer
        doctor doctors Arzt m Ärzte
        friend friends Freund m Freunde
        neighbour neighbours Nachbar m Nachbarn Nachbarn
        brother brothers Bruder m Brüder
        sister sisters Schwester f Schwestern
        mother mothers Mutter f Mütter
        father fathers Vater m Väter
        grandmother grandmothers Großmutter f Großmütter
        student students Student m Studenten Studenten
        baker bakers Bäcker m Bäcker
        farmer farmers Bauer m Bauern Bauern
        guest guests Gast m Gäste
        aunt aunts Tante f Tanten
        king kings König m Könige
    """,
    "animal": """
        dog dogs Hund m Hunde
        cat cats Katze f Katzen
        horse horses Pferd n Pferde
        bird birds Vogel m Vögel
        cow cows Kuh f Kühe
        mouse mice Maus f Mäuse
        pig pigs Schwein n Schweine
        duck ducks Ente f Enten
        rabbit rabbits Hase m Hasen Hasen
    """,
    "fruit": """
        apple apples Apfel m Äpfel
        pear pears Birne f Birnen
        banana bananas Banane f Bananen
        tomato tomatoes Tomate f Tomaten
    """,
    "dish": """
        egg eggs Ei n Eier
        soup soups Suppe f Suppen
        potato potatoes Kartoffel f Kartoffeln
        sausage sausages Wurst f Würste
    """,
    "cake": """
        cake cakes Kuchen m Kuchen
        biscuit biscuits Keks m Kekse
    """,
    "drink": """
        coffee - Kaffee m -
        tea - Tee m -
        juice - Saft m -
        beer - Bier n -
    """,
    "text": """
        book books Buch n Bücher
        letter letters Brief m Briefe
        story stories Geschichte f Geschichten
        poem poems Gedicht n Gedichte
    """,
    "paper": """
        newspaper newspapers Zeitung f Zeitungen
    """,
    "vehicle": """
        car cars Auto n Autos
        bicycle bicycles Fahrrad n Fahrräder
        clock clocks Uhr f Uhren
    """,
    "device": """
        computer computers Computer m Computer
        radio radios Radio n Radios
        lamp lamps Lampe f Lampen
    """,
    "clothes": """
        coat coats Mantel m Mäntel
        shirt shirts Hemd n Hemden
        dress dresses Kleid n Kleider
    """,
    "thing": """
        table tables Tisch m Tische
        chair chairs Stuhl m Stühle
        cup cups Tasse f Tassen
        key keys Schlüssel m Schlüssel
        hat hats Hut m Hüte
        bag bags Tasche f Taschen
        picture pictures Bild n Bilder
        ball balls Ball m Bälle
        flower flowers Blume f Blumen
        umbrella umbrellas Regenschirm m Regenschirme
        bottle bottles Flasche f Flaschen
        knife knives Messer n Messer
        glass glasses Glas n Gläser
        spoon spoons Löffel m Löffel
        present presents Geschenk n Geschenke
    """,
    "opening": """
        door doors Tür f Türen
        window windows Fenster n Fenster
        box boxes Kiste f Kisten
    """,
    "room": """
        room rooms Zimmer n Zimmer
        kitchen kitchens Küche f Küchen
    """,
    "place": """
        house houses Haus n Häuser
        garden gardens Garten m Gärten
        city cities Stadt f Städte
        village villages Dorf n Dörfer
        church churches Kirche f Kirchen
        bridge bridges Brücke f Brücken
    """,
}

_ADJECTIVES = {
    "any": "big groß, small klein, old alt, beautiful schön",
    "person": "young jung, friendly freundlich, strong stark, clever klug, rich reich, poor arm, tired müde",
    "animal": "young jung, brown braun, black schwarz, white weiß, strong stark, tired müde",
    "fruit": "fresh frisch, sweet süß, cheap billig, green grün",
    "dish": "fresh frisch, cold kalt, warm warm, cheap billig",
    "cake": "fresh frisch, sweet süß, cheap billig",
    "drink": "cold kalt, warm warm, sweet süß, fresh frisch",
    "text": "new neu, long lang, short kurz, interesting interessant",
    "paper": "new neu, interesting interessant, cheap billig",
    "thing": "new neu, red rot, blue blau, green grün, heavy schwer, cheap billig, expensive teuer, dirty schmutzig",
    "room": "clean sauber, dirty schmutzig, warm warm, cold kalt",
    "place": "new neu, quiet ruhig, white weiß",
}
_LIKE = dict.fromkeys(("vehicle", "device", "clothes", "opening"), "thing")  # kinds with the adjectives of another
_STEMS = {"teuer": "teur", "müde": "müd"}

# base third past | infinitive ich du er participle | objects. `+` before an infinitive: perfect with sein; a prefix
# stands before a point; `*`: animals do it too
_VERBS = """
    see sees saw | sehen sehe siehst sieht gesehen | person animal vehicle thing place *
    buy buys bought | kaufen kaufe kaufst kauft gekauft | fruit dish cake text paper vehicle device clothes thing
    sell sells sold | verkaufen verkaufe verkaufst verkauft verkauft | fruit dish cake vehicle device clothes thing
    eat eats ate | essen esse isst isst gegessen | fruit dish cake *
    drink drinks drank | trinken trinke trinkst trinkt getrunken | drink
    read reads read | lesen lese liest liest gelesen | text paper
    write writes wrote | schreiben schreibe schreibst schreibt geschrieben | text
    love loves loved | lieben liebe liebst liebt geliebt | person animal *
    find finds found | finden finde findest findet gefunden | animal clothes thing *
    need needs needed | brauchen brauche brauchst braucht gebraucht | paper vehicle device clothes thing
    look_for looks_for looked_for | suchen suche suchst sucht gesucht | person animal clothes thing *
    visit visits visited | besuchen besuche besuchst besucht besucht | person
    know knows knew | kennen kenne kennst kennt gekannt | person
    take takes took | nehmen nehme nimmst nimmt genommen | clothes thing
    wash washes washed | waschen wasche wäschst wäscht gewaschen | clothes animal
    cook cooks cooked | kochen koche kochst kocht gekocht | dish
    bake bakes baked | backen backe backst backt gebacken | cake
    forget forgets forgot | vergessen vergesse vergisst vergisst vergessen | clothes thing
    lose loses lost | verlieren verliere verlierst verliert verloren | clothes thing
    hear hears heard | hören höre hörst hört gehört | person animal *
    understand understands understood | verstehen verstehe verstehst versteht verstanden | person text
    repair repairs repaired | reparieren repariere reparierst repariert repariert | vehicle device
    feed feeds fed | füttern füttere fütterst füttert gefüttert | animal
    steal steals stole | stehlen stehle stiehlst stiehlt gestohlen | vehicle device clothes thing
    open opens opened | öffnen öffne öffnest öffnet geöffnet | opening
    close closes closed | schließen schließe schließt schließt geschlossen | opening
    call calls called | an.rufen rufe rufst ruft angerufen | person
    invite invites invited | ein.laden lade lädst lädt eingeladen | person
    pick_up picks_up picked_up | ab.holen hole holst holt abgeholt | person
    turn_on turns_on turned_on | ein.schalten schalte schaltest schaltet eingeschaltet | device
    turn_off turns_off turned_off | aus.schalten schalte schaltest schaltet ausgeschaltet | device
    tidy_up tidies_up tidied_up | auf.räumen räume räumst räumt aufgeräumt | room
    put_on puts_on put_on | an.ziehen ziehe ziehst zieht angezogen | clothes
    bring_back brings_back brought_back | zurück.bringen bringe bringst bringt zurückgebracht | clothes thing text
    sleep sleeps slept | schlafen schlafe schläfst schläft geschlafen | *
    work works worked | arbeiten arbeite arbeitest arbeitet gearbeitet |
    play plays played | spielen spiele spielst spielt gespielt | *
    laugh laughs laughed | lachen lache lachst lacht gelacht |
    sing sings sang | singen singe singst singt gesungen |
    dance dances danced | tanzen tanze tanzt tanzt getanzt |
    wait waits waited | warten warte wartest wartet gewartet | *
    cry cries cried | weinen weine weinst weint geweint |
    swim swims swam | +schwimmen schwimme schwimmst schwimmt geschwommen | *
    get_up gets_up got_up | +auf.stehen stehe stehst steht aufgestanden |
    fall_asleep falls_asleep fell_asleep | +ein.schlafen schlafe schläfst schläft eingeschlafen | *
    wake_up wakes_up woke_up | +auf.wachen wache wachst wacht aufgewacht | *
    come_back comes_back came_back | +zurück.kommen komme kommst kommt zurückgekommen | *
    arrive arrives arrived | +an.kommen komme kommst kommt angekommen |
    watch_tv watches_tv watched_tv | fern.sehen sehe siehst sieht ferngesehen |
"""
_TO_PLACES = """
    go goes went | +gehen gehe gehst geht gegangen |
    drive drives drove | +fahren fahre fährst fährt gefahren |
    run runs ran | +laufen laufe läufst läuft gelaufen |
"""
_DATIVE = """
    help helps helped | helfen helfe hilfst hilft geholfen | person
    thank thanks thanked | danken danke dankst dankt gedankt | person
    follow follows followed | +folgen folge folgst folgt gefolgt | person
    answer answers answered | antworten antworte antwortest antwortet geantwortet | person
"""
_GIVING = """
    give gives gave | geben gebe gibst gibt gegeben | fruit cake text paper thing
    show shows showed | zeigen zeige zeigst zeigt gezeigt | text paper thing vehicle
    send sends sent | schicken schicke schickst schickt geschickt | text thing
    bring brings brought | bringen bringe bringst bringt gebracht | fruit dish cake thing drink
"""
_SAYING = """
    know knows knew | wissen weiß weißt weiß gewusst |
    say says said | sagen sage sagst sagt gesagt |
    think thinks thought | glauben glaube glaubst glaubt geglaubt |
    hope hopes hoped | hoffen hoffe hoffst hofft gehofft |
"""
_SYNONYMS = {  # another German verb that says the same
    "open": "auf.machen mache machst macht aufgemacht",
    "close": "zu.machen mache machst macht zugemacht",
    "turn_on": "an.machen mache machst macht angemacht",
    "turn_off": "aus.machen mache machst macht ausgemacht",
}

LOCATIONS = {  # where something happens
    "in the garden": ("im Garten",),
    "in the kitchen": ("in der Küche",),
    "at home": ("zu Hause", "daheim"),
    "in the park": ("im Park",),
    "at school": ("in der Schule",),
    "at the station": ("am Bahnhof",),
    "in the city": ("in der Stadt",),
    "in front of the house": ("vor dem Haus",),
    "behind the church": ("hinter der Kirche",),
    "under the tree": ("unter dem Baum",),
    "at the market": ("auf dem Markt",),
    "by the lake": ("am See",),
    "in the forest": ("im Wald",),
    "in the street": ("auf der Straße",),
    "next to the bridge": ("neben der Brücke",),
    "in the big hall": ("in der großen Halle",),
}
DIRECTIONS = {  # where somebody goes
    "to school": ("in die Schule", "zur Schule"),
    "into the city": ("in die Stadt",),
    "to the market": ("auf den Markt", "zum Markt"),
    "home": ("nach Hause",),
    "to the station": ("zum Bahnhof",),
    "into the garden": ("in den Garten",),
    "to the museum": ("ins Museum", "zum Museum"),
    "to the lake": ("zum See", "an den See"),
    "into the forest": ("in den Wald",),
    "to the doctor": ("zum Arzt",),
    "over the bridge": ("über die Brücke",),
}
TIMES = {  # English -> German and the tenses it goes with; all may stand first
    "today": ("heute", "present past"),
    "now": ("jetzt", "present"),
    "every day": ("jeden Tag", "present"),
    "in the evening": ("am Abend", "present past"),
    "on Monday": ("am Montag", "present past future"),
    "on Sunday": ("am Sonntag", "present past future"),
    "in summer": ("im Sommer", "present past"),
    "yesterday": ("gestern", "past"),
    "last week": ("letzte Woche", "past"),
    "last night": ("gestern Abend", "past"),
    "tomorrow": ("morgen", "future"),
    "next week": ("nächste Woche", "future"),
    "soon": ("bald", "future"),
}
OFTEN = {"often": "oft", "sometimes": "manchmal", "always": "immer"}  # before the verb in English
NUMBERS = dict(
    zip(
        "two three four five six seven eight nine ten".split(),
        "zwei drei vier fünf sechs sieben acht neun zehn".split(),
        strict=True,
    )
)
MODALS = {  # ich and er, du, plural
    "can": ("kann", "kannst", "können"),
    "must": ("muss", "musst", "müssen"),
    "may": ("darf", "darfst", "dürfen"),
    "want_to": ("will", "willst", "wollen"),
    "should": ("sollte", "solltest", "sollten"),
}


def _nouns() -> dict[str, tuple[Noun, ...]]:
    found = {}
    for kind, table in _NOUNS.items():
        rows = [line.split() for line in table.strip().splitlines()]
        found[kind] = tuple(replace(Noun(*row), kind=kind) for row in rows)
    return found


def _adjectives() -> dict[str, tuple[Adjective, ...]]:
    tables = {}
    for kind, table in _ADJECTIVES.items():
        pairs = [entry.split() for entry in table.split(", ")]
        tables[kind] = tuple(Adjective(en, de, _STEMS.get(de, de)) for en, de in pairs)
    sizes = tables["any"][:2]  # what is eaten is big or small, but neither old nor beautiful
    kinds = {kind: tables["any"] + tables[_LIKE.get(kind, kind)] for kind in _NOUNS}
    kinds |= {kind: sizes + tables[kind] for kind in ("fruit", "dish", "cake")}
    return kinds | {kind: tables[kind] for kind in ("drink", "text", "paper")}


def _verb(line: str) -> Verb:
    english, german, objects = (part.split() for part in line.split("|"))
    base, third, past = english
    other = _SYNONYMS.get(base)
    forms = _german_verb(german)
    synonym = Verb(base, third, past, **_german_verb(other.split())) if other else None
    kinds = tuple(kind for kind in objects if kind != "*")
    return Verb(base, third, past, **forms, objects=kinds, animals="*" in objects, synonym=synonym)


def _german_verb(words: list[str]) -> dict[str, Any]:
    whole, ich, du, er, participle = words
    prefix, _, infinitive = whole.lstrip("+").rpartition(".")
    perfect = "sein" if whole.startswith("+") else "haben"
    return dict(infinitive=infinitive, ich=ich, du=du, er=er, participle=participle, perfect=perfect, prefix=prefix)


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(map(_verb, table.strip().splitlines()))


NOUNS = _nouns()
ADJECTIVES = _adjectives()
VERBS = _verbs(_VERBS)
TRANSITIVE = tuple(verb for verb in VERBS if verb.objects)
INTRANSITIVE = tuple(verb for verb in VERBS if not verb.objects)
TO_PLACES, DATIVE, GIVING, SAYING = map(_verbs, (_TO_PLACES, _DATIVE, _GIVING, _SAYING))
APART = {"pick_up", "turn_on", "turn_off", "tidy_up", "put_on", "bring_back"}  # English verbs that a pronoun parts
WITHOUT_PLACE = {"come_back", "need"}
WITHOUT_TIME = {"know", "love", "need", "understand"}  # verbs with which it is not said when or where
NOW_OR_THEN = {"know", "love"}  # nobody will know, or must love, somebody tomorrow
OPPOSED = (  # of these one at a time
    {"big", "small"}, {"old", "new", "young"}, {"cheap", "expensive"}, {"clean", "dirty"}, {"long", "short"},
    {"red", "blue", "green", "white", "black", "brown"}, {"warm", "cold"}, {"rich", "poor"}, {"strong", "tired"},
)  # fmt: skip
NEVER_DENIED = {"every day", "soon"}  # times with which a denial would mean something else
SPEAK_OF = {  # two things that one does with the same object, one after the other
    "fruit": (("buy", "eat"), ("buy", "sell")),
    "dish": (("cook", "eat"), ("buy", "eat")),
    "cake": (("bake", "eat"), ("bake", "sell")),
    "text": (("buy", "read"), ("read", "bring_back")),
    "thing": (("find", "take"), ("buy", "lose"), ("take", "bring_back"), ("look_for", "find")),
    "clothes": (("wash", "put_on"), ("find", "put_on"), ("buy", "forget")),
    "vehicle": (("buy", "sell"), ("steal", "sell"), ("repair", "sell")),
    "device": (("buy", "sell"), ("repair", "turn_on")),
    "animal": (("find", "feed"), ("look_for", "find")),
}
