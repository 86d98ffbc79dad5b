"""Our tokenizer against the `tokenizers` package, on tokenizers trained there and on those that assay makes up."""

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import strings

BUILD = Path(os.environ["ASSAY_BUILD"])

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


def ours(folder, texts, special):
    lines = "".join(json.dumps({"text": text.hex(), "special": special}) + "\n" for text in texts)
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
@pytest.mark.parametrize("vocab_size,added", [(256, False), (700, True), (3000, True)])
def test_trained(tmp_path, style, vocab_size, added):
    tokenizer = train(style, vocab_size, added)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokens = [token.content for token in ADDED]
    texts = strings.texts(seed=vocab_size, count=250, assigned=ASSIGNED, tokens=tokens)
    raw = [text.encode("utf-8", errors="replace") for text in texts] + strings.byte_strings(seed=vocab_size, count=250)
    compare(tokenizer, tmp_path, raw, special=True)
    compare(tokenizer, tmp_path, raw[-300:], special=False)


@pytest.mark.parametrize("style", ["gpt2", "qwen2"])
def test_every_character(tmp_path, style):
    """Each assigned character between others of each class: the classes of the two regular expression libraries."""
    tokenizer = train(style, 300, False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    chars = [c for i, c in enumerate(ASSIGNED) if i % 64 == 0 or not is_one_of_many(c)]
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
