"""Typical uses of datasets: a table is uploaded and read back, whole, as a stream, and in configurations and splits."""

import json

from datasets import Dataset, DatasetDict, get_dataset_config_names, load_dataset

REPO = "ada/rows"
said = {}

two = Dataset.from_dict({"text": ["one", "two"], "label": [0, 1]})
two.push_to_hub(REPO, private=True)
said["rows"] = load_dataset(REPO, split="train")["text"][:]
said["streamed"] = [row["label"] for row in load_dataset(REPO, split="train", streaming=True)]

many = Dataset.from_dict({"number": list(range(50_000)), "text": [f"row {n}" for n in range(50_000)]})
splits = DatasetDict({"train": many, "test": many.select(range(100))})
splits.push_to_hub(REPO, config_name="numbers", num_shards={"train": 4, "test": 1}, commit_message="Numbers")
said["configurations"] = sorted(get_dataset_config_names(REPO))
read = load_dataset(REPO, "numbers")
said["sizes"] = {name: len(split) for name, split in read.items()}
said["sum"] = sum(read["train"]["number"][:])

# The same rows again: the files are the same, and nothing but a commit is sent.
splits.push_to_hub("ada/copy", config_name="numbers", num_shards={"train": 4, "test": 1}, private=True)
said["copy"] = len(load_dataset("ada/copy", "numbers", split="train"))
print(json.dumps(said))
