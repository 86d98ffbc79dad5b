"""Strings that find differences between tokenizers: hand-picked ones, and random ones of several kinds."""

import random
import unicodedata
from pathlib import Path

TRAINING_TEXT = (Path(__file__).parent / "training_text.txt").read_text(encoding="utf-8")

HAND_PICKED = [
    "", " ", "  ", "\n", "\r\n", "\t", "\x00", "a", " a", "a ", "  a  b  ",
    "I'm you're HE'S WE'VE they'll I'D don'T 's 'S '\u017f 'LL 'lL ''s 's's x's\u017f",
    "e\u0301 \u00e9 A\u030a \u212b \u1e69 s\u0323\u0307 s\u0307\u0323 \ufb01 \u0958 \u0344 \uac01 \u1100\u1161\u11a8",
    "\u0301leading mark", "a" + "\u0301" * 40, "\u1100" * 5 + "\u1161" * 5, "q\u0307\u0323" * 20,
    "\U0001f469\u200d\U0001f4bb \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 "
    "\U0001f3f3\ufe0f\u200d\U0001f308 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd \u2764\ufe0f",
    "\u180e\u200b\u200c\u200d\u2060\ufeff\u00a0\u1680\u2000\u2028\u2029\u202f\u205f\u3000\x85\x0b\x0c\x1c\x1d\x1e\x1f",
    "x\u180ey \u180e  \u180e\u180e", "a\x85b \x85 \x85\x85c", "\u3000\u3000\u65e5\u672c",
    "1 12 123 1234 12345678901234567890 \u0661\u0662\u0663\u0664 \u216b\u00bd\u00b2 \U0001d7d8\U0001d7d9 1a2b3c",
    " " * 1000, " " * 1000 + "x", "x" + " " * 1000, "\n" * 1000, " \n" * 500, "\r\n" * 300, "\t \t" * 300,
    " " * 50_000, "a" * 20_000, "ab" * 5_000, "\U0001f600" * 2_000, "!" * 3_000, "0" * 5_000,
    "\ufffd\ufffe\uffff\U0010ffff\ue000\U000f0000", "<|endoftext|>", "text<|endoftext|>text <|endoftext|> ",
    "".join(chr(c) for c in range(0x250)), "".join(chr(c) for c in range(0x2000, 0x2070)),
    "camelCaseWordsAndUPPERCase snake_case_words kebab-case 'quoted' \"double\" (parens) [x] {y} a.b.c... ?!?!",
]

POOLS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", " ", " ", "\n", "\r\n\t", "'", "'",
    "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~", "\u0300\u0301\u0302\u0303\u0307\u0308\u0323\u0327\u0345\u20dd\ufe0f\u200d",
    "\u00e9\u00e8\u00e7\u00df\u0131\u0130\u017f\u212a\u01c5\ufb01\u1e9e", "\u0661\u0967\u0e51\u216b\u00bd\u2460\u00b2\u3007",
    "\u4e00\u65e5\u672c\u8a9e\u3042\u30a2\uff8a\uff9e\uac00\u1100\u1161\u11a8", "\U0001f600\U0001f44d\U0001f3fd\U0001f1e9\u2764\u20ac",
    "\u00a0\u1680\u180e\u2003\u2028\u2029\u202f\u3000\x85\x0b\x0c\x00\x1f\x7f\ufeff\u200b",
    "\u05d0\u05b8\u0627\u064e\u0915\u093c\u093e\u0e40\u0e34\u0f71\u0f72\u1b05\u1b35",
]


def random_mix(rng):
    return "".join(rng.choice(rng.choice(POOLS)) * rng.choice([1, 1, 1, 1, 2, 5]) for _ in range(rng.randrange(1, 40)))


def random_unicode(rng, assigned):
    return "".join(rng.choice(assigned) + rng.choice(["", "", " ", "a", "\u0301"]) for _ in range(rng.randrange(1, 20)))


def random_excerpt(rng):
    start = rng.randrange(len(TRAINING_TEXT))
    return TRAINING_TEXT[start:start + rng.randrange(1, 120)]


def random_normal_form(rng):
    return unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKD"]), random_excerpt(rng))


def random_spliced(rng, tokens):
    """Added tokens among text and white space, where their stripping and word rules bite."""
    parts = []
    for _ in range(rng.randrange(1, 6)):
        parts.append(rng.choice([random_excerpt(rng)[:8], " ", "  \n", "x", "_", "\u00e9", "", random_mix(rng)[:4]]))
        parts.append(rng.choice(tokens))
    return "".join(parts)


def texts(seed, count, assigned, tokens):
    """`count` valid strings of each random kind, after the hand-picked ones."""
    rng = random.Random(seed)
    made = list(HAND_PICKED)
    for _ in range(count):
        made += [random_mix(rng), random_unicode(rng, assigned), random_excerpt(rng), random_normal_form(rng)]
        made.append(random_spliced(rng, tokens))
    return made


def byte_strings(seed, count):
    """Bytes, most of them no UTF-8."""
    rng = random.Random(seed)
    made = [b"\xff", b"\xc3", b"a\xe2\x82", b"\xf0\x9f\x98 x", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]
    for _ in range(count):
        made.append(rng.randbytes(rng.randrange(1, 40)))
        broken = bytearray(random_mix(rng).encode())
        broken[rng.randrange(len(broken))] = rng.randrange(256)
        made.append(bytes(broken[:rng.randrange(1, len(broken) + 1)]))
    return made
