"""The media type of a file, from a fixed table by the extension of its name (attack O71).

Nothing is guessed: the rest of a name (`data:TEXT/HTML,x`) and the machine's `mime.types` are ignored. The table
contains no type that a browser runs or renders as a page: HTML, XML, SVG, scripts and style sheets are plain text, PDF
is bytes. Our pages allow scripts and styles from their own origin, so a file of such a type could become part of them.
"""

TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"

_TEXT_EXTENSIONS = """
    txt text log rst adoc tex bib diff patch srt jsonl ndjson yaml yml toml ini cfg conf properties env lock po
    html htm xhtml xht shtml xml xsl xslt xsd rdf atom rss svg mathml mml hta htc mht mhtml eml vue svelte
    js mjs cjs jsx ts mts cts tsx css scss sass less
    py pyi pyx pxd ipy rb pl pm lua r jl sh bash zsh fish bat ps1 awk sed php
    c h cc cpp cxx hpp hh cu cuh m mm rs go java kt kts scala groovy swift cs fs vb dart zig nim d f f90 f95 asm s
    hs ml mli clj cljs ex exs erl lisp el scm sql graphql proto thrift cmake mk gradle tf hcl nix jinja jinja2 j2 tmpl
    gitattributes gitignore gitmodules gitkeep dockerignore editorconfig dockerfile makefile
"""

_IMAGES = {
    "png": "image/png",
    "apng": "image/apng",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "ico": "image/vnd.microsoft.icon",
}

_TYPES = {
    **dict.fromkeys(_TEXT_EXTENSIONS.split(), TEXT),
    **_IMAGES,
    "md": "text/markdown; charset=utf-8",
    "markdown": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
    "json": "application/json",
    "ipynb": "application/json",
    "geojson": "application/geo+json",
    # The operating system uses these types to open a saved file with the right program.
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "jxl": "image/jxl",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "opus": "audio/ogg",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "weba": "audio/webm",
    "mid": "audio/midi",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "webm": "video/webm",
    "ogv": "video/ogg",
    "mov": "video/quicktime",
    "mkv": "video/x-matroska",
    "avi": "video/x-msvideo",
    "mpeg": "video/mpeg",
    "mpg": "video/mpeg",
    "zip": "application/zip",
    "tar": "application/x-tar",
    "gz": "application/gzip",
    "tgz": "application/gzip",
    "bz2": "application/x-bzip2",
    "xz": "application/x-xz",
    "zst": "application/zstd",
    "7z": "application/x-7z-compressed",
    "rar": "application/vnd.rar",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "arrows": "application/vnd.apache.arrow.stream",
    "h5": "application/x-hdf5",
    "hdf5": "application/x-hdf5",
    "sqlite": "application/vnd.sqlite3",
    "ttf": "font/ttf",
    "otf": "font/otf",
    "woff": "font/woff",
    "woff2": "font/woff2",
    # safetensors, gguf, onnx, bin, pt, npy, pkl and others have no registered type and are sent as bytes.
}


def media_type(path: str) -> str:
    return _TYPES.get(_extension(path), BYTES)


def is_image(path: str) -> bool:
    """Whether browsers display the file in an <img>."""
    return _extension(path) in _IMAGES


def _extension(path: str) -> str:
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    return extension.lower() if dot and extension.isascii() else ""
