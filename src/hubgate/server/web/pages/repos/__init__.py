"""The pages of repos: card, files, history, settings, new ones, lists of them. Programs use the API instead."""
