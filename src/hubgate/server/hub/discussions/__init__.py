"""Discussions and pull requests: their numbers and states. A pull request's commits stand under refs/pr/N."""
