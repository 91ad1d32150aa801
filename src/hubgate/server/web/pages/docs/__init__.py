"""The documentation at `/docs`: the Markdown files of `docs/`, grouped by reader, with a search.

source      finds and reads the files, in a checkout and in an installed package
navigation  the sections, and the addresses of pages
rendering   Markdown to HTML, with tabs, highlighted code and the hub's own addresses
highlight   spans for code, by language
searching   a search over all sections of all pages
routes      the pages

`/docs/sign-in`, `/docs/protect`, `/docs/webhooks` and `/docs/api` are generated from the code by their own modules and
are listed in the navigation. `make docs` builds a static site from the responses of these routes.
"""
