"""Discussions and pull requests: their numbers and states. The ref of pull request N is refs/pr/N."""
