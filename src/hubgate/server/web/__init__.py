"""The hub's web surface: pages with their templates and styles, the JSON API, git and file routes.

Handlers parse, call a use case and render; they contain no rules. Every page works without JavaScript.
"""
