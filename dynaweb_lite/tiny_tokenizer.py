"""The tiny model's tokenizer: about a thousand tokens, in which an element's id, a role and a frame are one token each.

Copying is what a tiny model must do well, and it copies token by token: a name must read the same in the goal, in the
page and in an action. So names stand after a quote or a bracket everywhere, and quotes belong to the frame tokens
around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, USER, ASSISTANT, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}"
    "{% elif m.role == 'assistant' %}<|assistant|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ROLES = "link button heading StaticText textbox searchbox combobox option checkbox radio img".split()
FRAMES = [
    "Tab 0 (current): ",
    " | http://shop.test/",
    " | http://forum.test/",
    "'\n",
    "' value: ''\n",
    "' value: '",
    " '",
    "Goal: ",
    "Action: ",
    "Answer: ",
    "Done?",
    "'.\nclick ",
    "'.\nstop [",
    "'.\ntype ",
    "'.\n",
    "click ",
    "type ",
    "stop [",
    "select ",
    "goto [",
    "] ",
    " [",
    "= ",
    ".html\n",
    "Price: ",
    "Rating: ",
    "Brand: ",
    "Author: ",
    "Points: ",
    "Status: ",
    "Total: ",
]
MAX_ID = 99
_WORDS = Regex(r" ?\p{L}+|\d{1,2}|[^\p{L}\d]")


def build_tokenizer(texts: Iterable[str], min_count: int = 8) -> PreTrainedTokenizerFast:
    """A tokenizer whose vocabulary is every word that stands at least `min_count` times in the texts, and all bytes.

    Ids [1] to [99], roles and frames are tokens too. A word that is not known is read as known pieces and bytes.
    """
    split = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(_WORDS, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    counts = Counter(word for text in texts for word, _ in split.pre_tokenize_str(text))
    special = [PAD, USER, ASSISTANT, END]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    known = sorted(w for w, n in counts.items() if n >= min_count and len(w) > 1)
    pieces = [(t, 0.0) for t in special] + [(b, -10.0) for b in alphabet] + [(w, -1.0) for w in known]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.pre_tokenizer, tokenizer.decoder = split, decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    ids = [f"[{i}]" for i in range(MAX_ID + 1)]
    openers = [f"{space}{role} '" for role in ROLES for space in ("", " ")]
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in [*ids, *openers, *FRAMES]])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)
    fast.chat_template = CHAT_TEMPLATE
    fast.add_special_tokens({"additional_special_tokens": [USER, ASSISTANT]})
    return fast
