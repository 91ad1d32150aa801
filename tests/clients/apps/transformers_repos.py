"""Typical uses of transformers without a deep-learning framework: saving and loading configurations and tokenizers."""

import json
import sys

from huggingface_hub import HfApi
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoTokenizer, BertConfig, PreTrainedTokenizerFast

REPO = "ada/tiny-bert"
api = HfApi()
said = {}

BertConfig(hidden_size=32, num_attention_heads=2).push_to_hub(REPO, private=True)
said["hidden_size"] = AutoConfig.from_pretrained(REPO).hidden_size

words = {"[UNK]": 0, "hello": 1, "hub": 2}
plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]").push_to_hub(REPO)
said["ids"] = AutoTokenizer.from_pretrained(REPO).encode("hello hub", add_special_tokens=False)

api.create_tag(REPO, tag="v1")
api.move_repo(REPO, "acme/tiny-bert")
said["moved"] = AutoConfig.from_pretrained(REPO, revision="v1", cache_dir="again").hidden_size
try:
    AutoConfig.from_pretrained(REPO, token=sys.argv[1], cache_dir="others")
except OSError as error:
    said["refused"] = str(error)
try:
    AutoConfig.from_pretrained("acme/nowhere")
except OSError as error:
    said["missing"] = str(error)
print(json.dumps(said))
