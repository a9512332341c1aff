"""The tiny model: its tokenizer, its initial weights, and what it reads before it meets the canonical sites."""

import random

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from dynaweb_lite.direct import DirectWeb
from dynaweb_lite.experts import ExpertPolicy
from dynaweb_lite.induction_init import write_induction_heads
from dynaweb_lite.language_model import LanguageModel
from dynaweb_lite.policy import encode_episode
from dynaweb_lite.pretraining import SiteSample, lookup_document, lookup_stream, site_documents
from dynaweb_lite.sites import SiteServer
from dynaweb_lite.sites.task_generator import generate_tasks
from dynaweb_lite.tiny_base import BaseSettings, Schooling, new_model, padded, token_accuracy, vocabulary_texts
from dynaweb_lite.tiny_tokenizer import build_tokenizer
from dynaweb_lite.worlds import rollout


@pytest.fixture(scope="module")
def lm():
    tokenizer = build_tokenizer(vocabulary_texts([1000]), min_count=4)
    return LanguageModel(new_model(len(tokenizer), BaseSettings()), tokenizer, "fresh")


def test_ids_roles_and_words_are_single_tokens(lm):
    def pieces(text):
        return lm.tokenizer.convert_ids_to_tokens(lm.reply_tokens(text)[:-1])

    assert pieces("[12] link 'Red Mug'\n") == ["[12]", " link '", "Red", "ĠMug", "'\n"]
    assert pieces("Open 'Red Mug'.\nclick [12]") == ["Open", " '", "Red", "ĠMug", "'.\nclick ", "[12]"]
    assert pieces("stop [12]") == ["stop [", "12", "]"]


@pytest.mark.parametrize("text", ["Zürich 東京 — naïve", "\ttabs\n\nand  spaces ", "[100] [0] '.'\"\\"])
def test_any_text_comes_back_as_it_was(lm, text):
    assert lm.decode(lm.reply_tokens(text)) == text


def test_an_episode_tokenised_turn_by_turn_reads_as_the_whole_chat(lm):
    tasks = generate_tasks(1000, "expert")[:5]
    for episode in rollout(ExpertPolicy(tasks), DirectWeb(SiteServer(1000)), tasks, 8):
        prompt, completion, mask = encode_episode(lm, episode)
        own = lm.tokenizer.decode([t for t, m in zip(completion, mask, strict=True) if m])
        assert own == "".join(f"{s.thought}\n{s.action}<|end|>" for s in episode.steps)
        assert lm.tokenizer.decode(prompt).endswith(f"Goal: {episode.goal}<|assistant|>")


def test_heads_attend_where_they_were_written_to(lm):
    """Before any training: 24 words, and the same again. What stood after a word's first place is 23 tokens back."""
    words = [i for t, i in lm.tokenizer.get_vocab().items() if t.isalpha() and len(t) > 2]
    model = new_model(len(lm.tokenizer), BaseSettings()).eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(torch.tensor([random.Random(1).sample(words, 24) * 2]), output_attentions=True)

    def weight(layer, head, back):
        return sum(output.attentions[layer][0, head, i, i - back].item() for i in range(26, 48)) / 22

    for head in range(4):
        assert weight(0, head, head + 1) > 0.6  # a position head, h + 1 tokens back
    induction = {back: weight(1, 0, back) for back in range(26)}
    assert max(induction, key=induction.get) == 23 and induction[23] > 3 / 37  # three times an even share
    assert weight(1, 3, 24) > 3 / 37  # equal content


def test_only_a_fitting_architecture_is_written_to():
    config = LlamaConfig(
        hidden_size=32, num_attention_heads=2, num_hidden_layers=1, vocab_size=50, tie_word_embeddings=True
    )
    with pytest.raises(ValueError, match="multiple of 4 heads"):
        write_induction_heads(LlamaForCausalLM(config))


def test_lookups_are_learnt_within_seconds(lm):
    settings = BaseSettings(warmup_updates=5)
    model = new_model(len(lm.tokenizer), settings)
    names = [i for t, i in lm.tokenizer.get_vocab().items() if t.isalpha() and len(t) > 2][:40]
    rng = random.Random(0)
    held_out = [lookup_document(lm, names, rng, 2, 48) for _ in range(40)]
    before, schooling = token_accuracy(model, held_out), Schooling(model, settings)
    for update in range(60):
        schooling.step([[lookup_document(lm, names, rng, 2, 48) for _ in range(32)]], update, 0.0)
    assert token_accuracy(model, held_out) > before + 0.3


def test_the_canonical_site_is_never_read_before(lm):
    with pytest.raises(ValueError, match="canonical"):
        site_documents(lm, 0, SiteSample())


def test_documents_carry_full_weight_on_replies_only(lm):
    documents = site_documents(lm, 1001, SiteSample(4, 2, 4, 4, 4))
    assert {d.kind for d in documents} == {"episode", "change", "click", "verdict"}
    for document in documents:
        reply = lm.tokenizer.decode([int(t) for t in document.tokens[document.weights >= 1]])
        assert reply.endswith("<|end|>") and "Tab 0 (current): Home | http://shop.test/\n[1]" not in reply
    tokens, weights = padded(documents)
    assert tokens.shape == weights.shape and weights[tokens == lm.tokenizer.pad_token_id].sum() == 0


def test_the_curriculum_asks_for_what_stands_above(lm):
    for _, (_, document) in zip(range(20), lookup_stream(lm), strict=False):
        asked = [int(t) for t, w in zip(document.tokens, document.weights, strict=True) if w == 1]
        assert asked and set(asked) <= {
            int(t) for t, w in zip(document.tokens, document.weights, strict=True) if w == 0
        }
