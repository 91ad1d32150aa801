"""Highlighted code without a library: one regular expression for each language finds comments, strings, keywords and
numbers, and everything else stays as it is. Colours only help reading, so an exact grammar is not needed.
"""

import re
from functools import cache

from markupsafe import Markup, escape

_CLASSES = {"comment": "c", "string": "s", "keyword": "k", "number": "n", "name": "a"}
_STRING = r'"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'"
_NUMBER = r"(?<![\w.$-])\d[\d_]*(?:\.\d+)?(?![\w.-])"
_C_COMMENT = r"//[^\n]*|/\*.*?\*/"


def _words(words: str) -> str:
    return rf"\b(?:{'|'.join(words.split())})\b"


_JAVASCRIPT = _words(
    "async await break case catch class const continue else export false finally for from function if import in let "
    "new null of return static switch this throw true try typeof undefined while"
)
_JAVA = _words(
    "boolean byte catch class else false final finally for if import int long new null package private public return "
    "static String throw throws true try var void while"
)
_GO = _words(
    "break byte case const continue defer else error false for func if import int int64 nil package range return "
    "string switch true type var"
)
_RUST = _words(
    "as bool else false fn for if impl in let loop match mod mut None Ok Err Option pub return Result self Some str "
    "String struct true use u8 u64 i64 while"
)
_PYTHON = _words(
    "and as assert async await break class continue def elif else except False finally for from global if import in is "
    "lambda None nonlocal not or pass raise return True try while with yield"
)
# Group names are keys of `_CLASSES`; earlier alternatives win.
_LANGUAGES = {
    "sh": rf"(?P<comment>(?:^|(?<=\s))#[^\n]*)|(?P<string>{_STRING})|(?P<name>\$\w+|\$\{{\w+\}})"
    r"|(?P<keyword>^[ \t]*(?:[A-Z_]+=\S+ +)*(?:\$ )?(?:curl|hubgate|git|hf|pip|make|npm|npx|sudo|export|echo|docker"
    r"|psql|systemctl|openssl|python3?|uvicorn|node|source|kill)\b)|(?P<number>(?<=\s)--?[a-zA-Z][\w-]*)",
    "python": rf'(?P<comment>#[^\n]*)|(?P<string>[bfr]{{0,2}}(?:""".*?"""|{_STRING}))|(?P<keyword>{_PYTHON})'
    rf"|(?P<name>@\w[\w.]*)|(?P<number>{_NUMBER})",
    "javascript": rf"(?P<comment>{_C_COMMENT})|(?P<string>{_STRING}|`(?:\\.|[^`\\])*`)|(?P<keyword>{_JAVASCRIPT})"
    rf"|(?P<number>{_NUMBER})",
    "java": rf"(?P<comment>{_C_COMMENT})|(?P<string>{_STRING})|(?P<keyword>{_JAVA})|(?P<number>{_NUMBER})",
    "go": rf"(?P<comment>{_C_COMMENT})|(?P<string>{_STRING}|`[^`]*`)|(?P<keyword>{_GO})|(?P<number>{_NUMBER})",
    # A lifetime is not the beginning of a string.
    "rust": rf'(?P<comment>{_C_COMMENT})|(?P<string>b?"(?:\\.|[^"\\])*")|(?P<keyword>{_RUST})|(?P<number>{_NUMBER})',
    "json": rf'(?P<name>"(?:\\.|[^"\\\n])*"(?=\s*:))|(?P<string>"(?:\\.|[^"\\\n])*")'
    rf"|(?P<keyword>\b(?:true|false|null)\b)|(?P<number>-?{_NUMBER})",
    "toml": rf"(?P<comment>#[^\n]*)|(?P<keyword>^\[\[?[^\]\n]*\]\]?)|(?P<name>^[\w.-]+(?=\s*=))|(?P<string>{_STRING})"
    rf"|(?P<number>{_NUMBER}|\b(?:true|false)\b)",
    "http": r"(?P<keyword>^(?:GET|POST|PUT|PATCH|DELETE|HEAD) |^HTTP/[\d.]+ \d+)|(?P<name>^[\w-]+(?=: ))"
    r'|(?P<string>"(?:\\.|[^"\\\n])*")',
}
_ALIASES = {
    "bash": "sh",
    "shell": "sh",
    "console": "sh",
    "js": "javascript",
    "ts": "javascript",
    "py": "python",
    "ini": "toml",
    "caddy": "toml",
    "nginx": "toml",
    "yaml": "toml",
}
_COMMANDS = re.compile(
    r"(?:\$ |#|(?:[A-Z_]+=\S* )*(?:curl|hubgate|git|hf|pip|make|npx|export|docker|psql|[A-Z_]{4,}=\S))"
)


def highlight(code: str, language: str) -> Markup:
    """The code as HTML. In an unknown language it is only escaped."""
    pattern = _pattern(_ALIASES.get(language, language))
    if pattern is None:
        return escape(code)
    pieces, done = [], 0
    for match in pattern.finditer(code):
        pieces.append(escape(code[done : match.start()]))
        pieces.append(Markup('<span class="t-{}">{}</span>').format(_CLASSES[str(match.lastgroup)], match[0]))
        done = match.end()
    return Markup("").join([*pieces, escape(code[done:])])


@cache
def _pattern(language: str) -> re.Pattern[str] | None:
    found = _LANGUAGES.get(language)
    return re.compile(found, re.DOTALL | re.MULTILINE) if found else None


def guess_language(code: str) -> str:
    """The language of a block that does not name one; most of these are commands."""
    start = code.lstrip()
    if re.match(r'\{\s*"|\[\s*[{"]', start):
        return "json"
    if re.match(r"(?:import|from) \w+|@\w+\(|async def |def ", start):
        return "python"
    if re.match(r"(?:GET|POST|PUT|PATCH|DELETE) /|HTTP/", start):
        return "http"
    return "sh" if _COMMANDS.match(start) else ""
