"""Batched generation equals one-by-one generation; tokens line up with the chat template; adapters do not leak."""

import pytest
import torch
from peft import LoraConfig, get_peft_model

from dynaweb_lite import generation
from dynaweb_lite.language_model import LanguageModel, ModelError
from dynaweb_lite.prompts import assistant, user


def prompts_of_many_lengths(lm: LanguageModel) -> list[list[int]]:
    texts = ["buy the red mug", "Tab 0", "[1] link 'My Cart'\n" * 9, "x", "Goal: buy the blue lamp", "buy the red mug"]
    return [lm.prompt_tokens([user(text)]) for text in texts]


def greedy_by_transformers(lm: LanguageModel, prompt: list[int], max_new_tokens: int) -> tuple[int, ...]:
    ids = torch.tensor([prompt])
    made = lm.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=max_new_tokens, do_sample=False, pad_token_id=0
    )
    return tuple(made[0, len(prompt) :].tolist())


def lively(lm: LanguageModel, end_bias: float) -> LanguageModel:
    """The toy with large weights of its own at the output, so that it does not repeat itself, and replies that end."""
    torch.manual_seed(5)
    head = torch.nn.Linear(lm.model.config.hidden_size, lm.model.config.vocab_size)
    torch.nn.init.normal_(head.weight, std=0.5)
    torch.nn.init.zeros_(head.bias)
    head.bias.data[lm.end_of_turn] = end_bias
    lm.model.lm_head = head
    for layer in lm.model.model.layers:
        torch.nn.init.normal_(layer.self_attn.v_proj.weight, std=0.3)
        torch.nn.init.normal_(layer.self_attn.o_proj.weight, std=0.3)
    return lm


@pytest.mark.parametrize("limits", [(32_768, 65_536), (40, 300)])
def test_batched_greedy_equals_transformers_one_by_one(toy_model, monkeypatch, limits):
    monkeypatch.setattr(generation, "MAX_PREFILL_TOKENS", limits[0])
    monkeypatch.setattr(generation, "MAX_CACHE_TOKENS", limits[1])
    lm = lively(toy_model, end_bias=7.0)
    prompts = prompts_of_many_lengths(lm)
    made = lm.generate(prompts, 80)
    assert [g.tokens for g in made] == [greedy_by_transformers(lm, p, 80) for p in prompts]
    assert len({len(g.tokens) for g in made}) > 1, "rows should end at different steps, or dropping rows goes untested"


def test_sampled_logprobs_are_those_of_a_fresh_forward_pass(toy_model):
    lm = lively(toy_model, end_bias=3.0)
    prompt = prompts_of_many_lengths(lm)[0]
    made = lm.generate([prompt] * 6 + prompts_of_many_lengths(lm), 20, 0.7, 0.9, torch.Generator().manual_seed(3))
    assert len({g.tokens for g in made[:6]}) > 1
    for reply in made[:6]:
        logits = lm.model(torch.tensor([[*prompt, *reply.tokens]])).logits[0, len(prompt) - 1 : -1]
        expected = torch.log_softmax(logits / 0.7, -1)[torch.arange(len(reply.tokens)), list(reply.tokens)]
        assert torch.allclose(torch.tensor(reply.logprobs), expected, atol=1e-4)


def test_a_generator_makes_sampling_repeatable(toy_model):
    lm = lively(toy_model, end_bias=3.0)
    prompts = prompts_of_many_lengths(lm)
    first, again, other = (
        [g.tokens for g in lm.generate(prompts, 12, 1.0, 1.0, torch.Generator().manual_seed(seed))]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_top_p_keeps_the_smallest_set_that_reaches_p():
    sampler = generation.Sampler(1.0, 0.6, None)
    kept = sampler._nucleus(torch.tensor([[0.1, 0.5, 0.25, 0.15]]))
    assert kept.tolist() == [[0.0, 0.5, 0.25, 0.0]]


def test_episode_tokens_equal_the_rendered_chat(toy_model):
    turns = [user("page one"), assistant("click [1]"), user("page two"), assistant("stop [yes]")]
    tokens = toy_model.prompt_tokens(turns[:1]) + toy_model.reply_tokens("click [1]")
    tokens += toy_model.turn_tokens(turns[2]) + toy_model.reply_tokens("stop [yes]")
    rendered = toy_model.tokenizer.apply_chat_template(turns, tokenize=False)
    assert tokens == toy_model.tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert toy_model.decode(toy_model.reply_tokens("stop [yes]")) == "stop [yes]"


def test_end_of_turn_is_found_where_text_follows_it(toy_model):
    """Templates such as Qwen's put a line break after the end of a turn; it belongs to the next turn's tokens."""
    toy_model.tokenizer.chat_template = (
        "{% for m in messages %}<|user|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|user|>assistant\n{% endif %}"
    )
    assert toy_model.tokenizer.convert_ids_to_tokens(toy_model.end_of_turn) == "<|end|>"
    text = toy_model.tokenizer.decode(toy_model.turn_tokens(user("page two")))
    assert text == "\n<|user|>user\npage two<|end|>\n<|user|>assistant\n"


def test_adapters_share_a_base_without_leaking(toy_model, tmp_path):
    prompts = prompts_of_many_lengths(toy_model)
    plain = toy_model.generate(prompts, 8)
    for name, seed in (("policy", 1), ("world", 2)):
        torch.manual_seed(seed)
        config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
        other = get_peft_model(type(toy_model.model)(toy_model.model.config), config)
        other.save_pretrained(tmp_path / name)
    policy = toy_model.share(tmp_path / "policy", "policy")
    policy_says = policy.generate(prompts, 8)
    world = toy_model.share(tmp_path / "world", "world")
    voices = [
        plain,
        policy_says,
        world.generate(prompts, 8),
        toy_model.generate(prompts, 8),
        policy.generate(prompts, 8),
    ]
    first = torch.tensor([[g.logprobs[0] for g in said] for said in voices])
    assert torch.allclose(first[[0, 1]], first[[3, 4]], atol=1e-5)
    assert min((first[a] - first[b]).abs().max() for a, b in ((0, 1), (0, 2), (1, 2))) > 1e-3


def test_loading_says_what_is_wrong(tmp_path, toy_model):
    with pytest.raises(ModelError, match="folder without a model"):
        LanguageModel.load(tmp_path)
    with pytest.raises(ModelError, match="holds no adapter"):
        toy_model.share(tmp_path, "world")
    toy_model.tokenizer.chat_template = None
    with pytest.raises(ModelError, match="no chat template"):
        LanguageModel(toy_model.model, toy_model.tokenizer, "toy")


def test_a_saved_model_loads_and_says_the_same(toy_model, tmp_path):
    toy_model.model.save_pretrained(tmp_path)
    toy_model.tokenizer.save_pretrained(tmp_path)
    loaded = LanguageModel.load(tmp_path, device="cpu")
    prompts = prompts_of_many_lengths(toy_model)
    assert loaded.generate(prompts, 8) == toy_model.generate(prompts, 8)
    assert torch.allclose(loaded.next_token_logits(prompts), toy_model.next_token_logits(prompts))
