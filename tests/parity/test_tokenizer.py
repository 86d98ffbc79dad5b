"""Our tokenizer against the `tokenizers` package, on tokenizers trained there and on those that assay makes up.

ASSAY_SOAK=1: with more sizes of vocabularies, more strings, all characters in each style, and words four times as long.
"""

import json
import os
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import strings

BUILD = Path(os.environ["ASSAY_BUILD"])
SOAK = bool(os.environ.get("ASSAY_SOAK"))

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

ADDED = [
    AddedToken("<|endoftext|>", special=True, normalized=False),
    AddedToken("<|bos|>", special=True, normalized=False),
    AddedToken("<mask>", special=True, normalized=False, lstrip=True),
    AddedToken("<right>", special=False, normalized=False, rstrip=True),
    AddedToken("<both>", special=False, normalized=True, lstrip=True, rstrip=True),
    AddedToken("word", special=False, normalized=False, single_word=True),
    AddedToken("Stra\u00dfe", special=False, normalized=True),
    AddedToken("e\u0301clair", special=False, normalized=True),
    AddedToken("\u00e9", special=False, normalized=False, single_word=True),
    AddedToken("<|endoftext|>extra", special=False, normalized=False),
    AddedToken("<tool_call>", special=False, normalized=False),
    AddedToken("   ", special=False, normalized=False),
]


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


STYLES = {
    "gpt2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "gpt2_prefix_space": lambda: pre_tokenizers.ByteLevel(add_prefix_space=True),
    "llama3": lambda: split(LLAMA3),
    "qwen2": lambda: split(QWEN2),
    "smollm2": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "digits": lambda: pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
}


def train(style, vocab_size, added):
    tokenizer = Tokenizer(models.BPE(ignore_merges=style == "llama3"))
    tokenizer.pre_tokenizer = STYLES[style]()
    tokenizer.decoder = decoders.ByteLevel()
    if style == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, min_frequency=1,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(strings.TRAINING_TEXT.splitlines(keepends=True), trainer)
    if added:
        tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if style == "llama3" and added:
        bos = ("<|bos|>", tokenizer.token_to_id("<|bos|>"))
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<|bos|> $A", pair="<|bos|> $A <|bos|> $B:1", special_tokens=[bos]),
        ])
    return tokenizer


SPACE = "\u2581"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIALS = ["<unk>", "<s>", "</s>"]


def metaspace(scheme, cut):
    return pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=cut)


def replace_spaces(prepend):
    steps = [normalizers.Prepend(SPACE)] if prepend else []
    return normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])


def fallback(*more):
    return decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *more])


STRIP = decoders.Strip(content=" ", left=1, right=0)

# Normaliser, pre-tokeniser, decoder, options of the model, options of the file's own special tokens.
SENTENCEPIECE = {
    "llama2": lambda: (replace_spaces(True), None, fallback(STRIP), {}, {"normalized": True}),
    "tinyllama": lambda: (replace_spaces(True), None, fallback(STRIP), {}, {"normalized": False}),
    "no_prefix": lambda: (replace_spaces(False), None, fallback(), {}, {"normalized": False}),
    "first": lambda: (None, metaspace("first", False), fallback(STRIP), {}, {"normalized": False}),
    "first_split": lambda: (None, metaspace("first", True), decoders.Metaspace(SPACE, "first", True), {},
                            {"normalized": False}),
    "always": lambda: (None, metaspace("always", False), fallback(STRIP), {"ignore_merges": True},
                       {"normalized": False, "lstrip": True}),
    "always_split": lambda: (None, metaspace("always", True), decoders.Metaspace(SPACE, "always", True), {},
                             {"normalized": True, "rstrip": True}),
    "never": lambda: (None, metaspace("never", False), decoders.Metaspace(SPACE, "never", False), {},
                      {"normalized": False}),
    "never_split": lambda: (None, metaspace("never", True), fallback(), {"ignore_merges": True},
                            {"normalized": False}),
    "nfc": lambda: (normalizers.Sequence([normalizers.NFC(), replace_spaces(True)]), None, fallback(STRIP), {},
                    {"normalized": True}),
    # The tokenizer that transformers makes of a GGUF file of SentencePiece's.
    "gguf": lambda: (replace_spaces(True), None,
                     decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Replace(SPACE, " "), STRIP]),
                     {}, {"normalized": False}),
    "fused_metaspace": lambda: (None, metaspace("first", True), decoders.Sequence([
        decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace(SPACE, "never", True)]), {}, {"normalized": False}),
    "strips": lambda: (replace_spaces(True), None, decoders.Sequence([
        decoders.Strip(content="e", left=2, right=0), fallback(decoders.Strip(content=" ", left=3, right=0))]), {},
        {"normalized": False}),
}


def train_sentencepiece(style, vocab_size, byte_tokens, added, unknown="<unk>", fuse=True):
    """A tokenizer as the converter makes one of SentencePiece's file: specials, bytes, then pieces and characters."""
    normalizer, pre_tokenizer, decoder, options, special = SENTENCEPIECE[style]()
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = replace_spaces(True)
    trained.pre_tokenizer = metaspace("always", True)
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, min_frequency=1, limit_alphabet=90,
                                  special_tokens=SPECIALS + byte_tokens)
    trained.train_from_iterator(strings.TRAINING_TEXT.splitlines(), trainer)
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=model["vocab"], merges=merges, unk_token=unknown, fuse_unk=fuse,
                                     byte_fallback=True, **options))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens([AddedToken(token, **special) for token in SPECIALS])
    if added:
        tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B:1",
                                                             special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    return tokenizer


def ours(folder, texts, special):
    return ask(folder, [{"text": text.hex(), "special": special} for text in texts])


def ask(folder, requests):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([BUILD / "assay_tokenize", folder], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def lossy(hex_bytes):
    return bytes.fromhex(hex_bytes).decode("utf-8", errors="replace")


def compare(tokenizer, folder, raw, special):
    """Ids and both decodings of every byte string; at most ten differences are shown."""
    decoded = [text.decode("utf-8", errors="replace") for text in raw]
    expected = [tokenizer.encode(text, add_special_tokens=special).ids for text in decoded]
    found = ours(folder, raw, special)
    assert len(found) == len(raw)
    wrong = []
    for text, ids, reply in zip(decoded, expected, found):
        plain = tokenizer.decode(ids, skip_special_tokens=True)
        if reply["ids"] != ids:
            wrong.append(("encode", text[:80], ids[:40], reply["ids"][:40]))
        elif lossy(reply["decoded"]) != tokenizer.decode(ids, skip_special_tokens=False):
            wrong.append(("decode", text[:80], ids[:40]))
        elif lossy(reply["plain"]) != plain:
            wrong.append(("decode without special tokens", text[:80], ids[:40]))
        elif bytes.fromhex(reply["streamed"]).decode("utf-8") != plain:
            wrong.append(("stream", text[:80], ids[:40]))
    assert not wrong, f"{len(wrong)} of {len(raw)} differ, the first: {wrong[:10]}"


def is_outdated(char):
    """Marks younger than the package's own table of combining classes, which it takes for starters."""
    text = "a" + char + "\u0301"
    return unicodedata.combining(char) != 0 and normalizers.NFC().normalize_str(text) != unicodedata.normalize("NFC", text)


def assigned_characters():
    every = map(chr, range(sys.maxunicode + 1))
    return [c for c in every if unicodedata.category(c) not in ("Cn", "Cs", "Co") and not is_outdated(c)]


def is_one_of_many(char):
    """In the great blocks of like characters: ideographs, syllables, hieroglyphs."""
    name = unicodedata.name(char, "")
    return name.startswith(("CJK UNIFIED", "HANGUL SYLLABLE", "TANGUT", "EGYPTIAN", "CUNEIFORM", "ANATOLIAN", "BAMUM"))


ASSIGNED = assigned_characters()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("vocab_size,added", [(256, False), (700, True), (3000, True)] if SOAK else [(700, True)])
def test_trained(tmp_path, style, vocab_size, added):
    tokenizer = train(style, vocab_size, added)
    tokens = [token.content for token in ADDED]
    check_random(tokenizer, tmp_path, vocab_size, 250 if SOAK else 100, tokens)


def check_random(tokenizer, folder, seed, count, tokens):
    tokenizer.save(str(folder / "tokenizer.json"))
    texts = strings.texts(seed=seed, count=count, assigned=ASSIGNED, tokens=tokens)
    raw = [text.encode("utf-8", errors="replace") for text in texts] + strings.byte_strings(seed=seed, count=count)
    compare(tokenizer, folder, raw, special=True)
    compare(tokenizer, folder, raw[-count:], special=False)


@pytest.mark.parametrize("style,vocab_size,added", [
    ("llama2", 400, False), ("first", 400, False), *((style, 1500, True) for style in SENTENCEPIECE)])
def test_sentencepiece(tmp_path, style, vocab_size, added):
    tokenizer = train_sentencepiece(style, vocab_size, BYTES, added)
    names = [*SPECIALS, "<0x0A>", "<0xE4><0xB8><0xAD>", SPACE] + [token.content for token in ADDED]
    check_random(tokenizer, tmp_path, vocab_size, 60 if SOAK else 30, names)


@pytest.mark.parametrize("unknown,fuse", [("<unk>", True), ("<unk>", False), (None, True)])
def test_some_byte_tokens(tmp_path, unknown, fuse):
    """Characters of which not every byte has a token are unknown; the others among them are bytes all the same."""
    tokenizer = train_sentencepiece("llama2", 300, BYTES[:0xCC], False, unknown=unknown, fuse=fuse)
    check_random(tokenizer, tmp_path, 300, 60, SPECIALS)


@pytest.mark.parametrize("style", ["llama2", "first", "first_split"])
def test_byte_tokens_decode(tmp_path, style):
    """Any ids in any order, as a model's own choices are: runs of byte tokens that are no UTF-8."""
    tokenizer = train_sentencepiece(style, 500, BYTES, True)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    rng = random.Random(3)
    first = tokenizer.token_to_id("<0x00>")
    lists = []
    for _ in range(400):
        text = [first + byte for byte in strings.random_mix(rng).encode()]
        text[rng.randrange(len(text))] = first + rng.randrange(256)
        anything = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randrange(12))]
        lists.append(rng.choice([text, text + anything, anything + text[:3] + anything]))
    expected = [{"decoded": tokenizer.decode(ids, skip_special_tokens=False),
                 "plain": tokenizer.decode(ids, skip_special_tokens=True)} for ids in lists]
    for ids, theirs, reply in zip(lists, expected, ask(tmp_path, [{"ids": ids} for ids in lists])):
        assert bytes.fromhex(reply["decoded"]).decode() == theirs["decoded"], ids
        assert bytes.fromhex(reply["plain"]).decode() == theirs["plain"], ids
        assert bytes.fromhex(reply["streamed"]).decode() == theirs["plain"], ids


def test_one_long_word(tmp_path):
    """Without a pre-tokeniser a whole text is one word; a quadratic merge of a megabyte would take hours."""
    tokenizer = train_sentencepiece("llama2", 1500, BYTES, False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    size = 1_000_000 if SOAK else 250_000
    text = strings.TRAINING_TEXT * (size // len(strings.TRAINING_TEXT))
    compare(tokenizer, tmp_path, [text.encode(), ("a" * (size // 2)).encode(), (" " * (size // 2)).encode()], special=True)


SPLITTERS = ["gpt2", "qwen2", "smollm2", "digits"]


@pytest.mark.parametrize("style", SPLITTERS)
def test_every_character(tmp_path, style):
    """Each assigned character between others of each class: the classes of the two regular expression libraries."""
    tokenizer = train(style, 300, False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    chars = [c for i, c in enumerate(ASSIGNED) if i % 64 == 0 or not is_one_of_many(c)]
    if not SOAK:  # each character in one of the styles
        chars = chars[SPLITTERS.index(style)::len(SPLITTERS)]
    texts = ["".join(f"a{c}1{c}!{c} {c}{c}" for c in chars[i:i + 16]) for i in range(0, len(chars), 16)]
    compare(tokenizer, tmp_path, [text.encode() for text in texts], special=False)


@pytest.mark.parametrize("style", ["gpt2", "qwen2"])
def test_merges_as_strings(tmp_path, style):
    """Files written before tokenizers 0.20 spell a merge "a b"."""
    tokenizer = train(style, 700, True)
    document = json.loads(tokenizer.to_str())
    document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    texts = strings.texts(seed=7, count=50, assigned=ASSIGNED, tokens=["<mask>", "word"])
    compare(tokenizer, tmp_path, [text.encode("utf-8", errors="replace") for text in texts], special=False)
