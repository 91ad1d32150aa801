"""QR codes of the terminal. The expected code was drawn by another encoder, with the same version and mask."""

from hubgate.cli.user import qr

LINK = "https://hub.example/oauth/device?user_code=WDJB-MJHT"
EXPECTED = """\
█████████████████████████████████
██ ▄▄▄▄▄ █▄██▀█▀ █ ▀▀▄▄█ ▄▄▄▄▄ ██
██ █   █ █ ▀  ▀▄▀▀█▀▄▄██ █   █ ██
██ █▄▄▄█ █▄█▄▄ ▄▀▄▄▄  ▀█ █▄▄▄█ ██
██▄▄▄▄▄▄▄█▄█▄▀ █▄▀▄▀▄▀▄█▄▄▄▄▄▄▄██
██   ▄█▀▄▀ █▄▄██▄█▀  ▀▀ ▀▀ ▄▄█ ██
██▄▀█▀ ▀▄█   ▄   █▄▄██▀ ▀  █▄▄▀██
██ ▄▄▄▄▄▄▀  ▄▄▄    ▄▄ ▀▀▀▀█▄ ▀▀██
██▄█▄  ▄▄▄▀▄ ▀▀█ █▀▄▄▄ ▀██ █▄ ▄██
██▄▄▀▄▄ ▄▄▀ ▀▄▀ █  █▄█ ▄█ ▄ ▀ ███
██▄█▀█  ▄█▀▀▀█▄█ ▄ ▀███ █▄▄█ ████
███▄▄█▄█▄▄ █ ▄██▄█ ▄ █ ▄▄▄   ▀▀██
██ ▄▄▄▄▄ ██▀▄▄▀▀▀▀ ▄ ▄ █▄█  █▄▀██
██ █   █ █▀ ▄▀  █ ▀ ▀█  ▄▄ ▀▄▀▀██
██ █▄▄▄█ █ ▄▀▀▄▄ ▀█▄  ▀█▀▄▀▀▄▀▄██
██▄▄▄▄▄▄▄█▄█▄▄▄██▄██▄▄▄▄█▄▄██▄███
▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀"""


def test_code_equals_that_of_another_encoder() -> None:
    matrix = qr.modules(LINK)
    assert matrix is not None
    assert qr.drawn(matrix, colour=False) == EXPECTED
    lines = qr.drawn(matrix, colour=True).splitlines()
    assert len(lines) == len(EXPECTED.splitlines())
    assert all(line.startswith("\x1b[") and line.endswith("\x1b[0m") for line in lines)


def test_size_grows_with_the_text_up_to_106_bytes() -> None:
    sizes = [len(qr.modules("x" * length) or ()) for length in (17, 18, 32, 53, 78, 106, 107)]
    assert sizes == [21, 25, 25, 29, 33, 37, 0]
