"""The demo's repos: cards, files, and the changes of a month."""

SENTIMENT = "acme/sentiment"
LARGE = "ada/sentiment-large"
REVIEWS = "acme/reviews"
NOTES = "ada/notes"

SENTIMENT_CARD = """---
license: apache-2.0
language: en
datasets:
- acme/reviews
tags:
- text-classification
---
# Sentiment

Says whether a product review is positive, neutral or negative. Trained on [acme/reviews](/datasets/acme/reviews) after
every push: a webhook starts the training, and the result is committed to `training.json`.

| | accuracy |
|---|---|
| English | 0.91 |
| German | 0.87 |

```python
from hubgate import Hub

Hub().download_all("acme/sentiment", "sentiment")
```
"""

LARGE_CARD = """---
license: other
tags:
- text-classification
---
# Sentiment, large

The large version of [acme/sentiment](/acme/sentiment). Access is granted by hand: ask for it on this page.
"""

REVIEWS_CARD = """---
license: cc-by-4.0
language: en
tags:
- reviews
---
# Reviews

Product reviews with a rating from 1 to 5. New rows arrive every day.
"""

NOTES_CARD = """# Notes

Ada's notes on experiments. A private repo: only Ada, and apps that she allows to read her private repos, can see it.
"""

SUBJECTS = ("kettle", "lamp", "rucksack", "keyboard", "teapot", "bicycle bell", "headphones", "notebook")
OPINIONS = (
    ("does what it should", 4),
    ("broke after a week", 1),
    ("is worth every cent", 5),
    ("arrived late, but works", 3),
    ("was a present, much loved", 5),
    ("is smaller than the picture", 2),
)


def rows_of_day(day: int) -> str:
    """The rows that were added on a day, counted from the first."""
    lines = ["text,rating"]
    for number in range(3 + day % 4):
        opinion, rating = OPINIONS[(day * 5 + number) % len(OPINIONS)]
        lines.append(f"The {SUBJECTS[(day * 3 + number) % len(SUBJECTS)]} {opinion}.,{rating}")
    return "\n".join(lines) + "\n"


CONFIG = """{
  "architecture": "bag-of-words",
  "labels": ["negative", "neutral", "positive"]
}
"""
FASTER_CONFIG = """{
  "architecture": "bag-of-words",
  "cache": true,
  "labels": ["negative", "neutral", "positive"]
}
"""
