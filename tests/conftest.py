"""Fixtures that several test files share."""

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from dynaweb_lite.language_model import LanguageModel

TOY_TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}"
    "{% elif m.role == 'assistant' %}<|assistant|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TOY_TEXT = [
    "Tab 0 (current): Red mug | http://shop.test/red-mug\n[1] link 'My Cart'\n[2] button 'Add to Cart'\n"
    "[3] heading 'Red mug'\n\t[4] StaticText '$12.50'\nGoal: buy the red mug\nAction: click [1]\nOpens My Cart.",
    "The page updates.\n= [1] [3]\ntextbox 'Search' value: 'blue lamp'\nNothing changes.\nAnswer: yes no\nDone?",
]


def make_toy_model(seed: int = 0) -> LanguageModel:
    """An untrained Llama of about 60,000 parameters with a tokenizer and chat template like the tiny model's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\[\d+\]|\w+|\n|[^\w\n]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TOY_TEXT, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|pad|>", eos_token="<|end|>")
    fast.chat_template = TOY_TEMPLATE
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        pad_token_id=fast.pad_token_id,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
    )
    model = LlamaForCausalLM(config).eval()
    torch.nn.init.normal_(model.model.embed_tokens.weight, std=0.3)  # tied to the head: at 0.02 no logit could grow
    return LanguageModel(model, fast, "toy")


@pytest.fixture
def toy_model() -> LanguageModel:
    """A fresh toy model for each test: training in one test cannot reach another."""
    torch.set_num_threads(1)
    return make_toy_model()
