"""The initial files of a new repo."""

from collections.abc import Mapping

# Extensions of files that are usually large; they are stored as large files regardless of their size.
_LARGE = """
    7z arrow bin bz2 ckpt ftz gz h5 joblib lfs.* mlmodel model msgpack npy npz onnx ot parquet pb pickle pkl pt pth rar
    safetensors tar tar.* tflite tgz wasm xz zip zst
""".split()  # noqa: SIM905 -- a paragraph reads better than forty lines

_PATTERNS = [*(f"*.{ending}" for ending in _LARGE), "saved_model/**/*", "*tfevents*"]

GIT_ATTRIBUTES = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in _PATTERNS)


def readme_with(fields: Mapping[str, str]) -> str:
    """README.md with these fields as front matter. Values are quoted, since a name may look like a number; the license
    is not, because tools look for it unquoted.
    """
    lines = (f"{field}: {text}\n" if field == "license" else f'{field}: "{text}"\n' for field, text in fields.items())
    return "".join(["---\n", *lines, "---\n"])
