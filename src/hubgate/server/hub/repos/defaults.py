"""What a new repo begins with."""

from collections.abc import Mapping

# Files that are large as a rule, whatever their size at the moment.
_LARGE = """
    7z arrow bin bz2 ckpt ftz gz h5 joblib lfs.* mlmodel model msgpack npy npz onnx ot parquet pb pickle pkl pt pth rar
    safetensors tar tar.* tflite tgz wasm xz zip zst
""".split()  # noqa: SIM905 -- a paragraph reads better than forty lines

_PATTERNS = [*(f"*.{ending}" for ending in _LARGE), "saved_model/**/*", "*tfevents*"]

GIT_ATTRIBUTES = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in _PATTERNS)


def readme_with(said: Mapping[str, str]) -> str:
    """A name may look like a number, so it is in quotes; tools look for a license without any."""
    lines = (f"{field}: {text}\n" if field == "license" else f'{field}: "{text}"\n' for field, text in said.items())
    return "".join(["---\n", *lines, "---\n"])
