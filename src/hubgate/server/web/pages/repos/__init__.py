"""The pages of repos: card, files, history, settings, creation and lists. Programs use the API instead."""
