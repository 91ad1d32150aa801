"""A QR code of an address, as text for a terminal (ISO/IEC 18004: byte mode, error correction L, versions 1 to 5).

These versions have a single block of error correction and no version information. They hold 106 bytes, enough for the
address of a sign-in.
"""

from collections.abc import Iterator

# Codewords for data and for error correction, by version.
_CODEWORDS = {1: (19, 7), 2: (34, 10), 3: (55, 15), 4: (80, 20), 5: (108, 26)}
_BYTE_MODE, _LEVEL_L, _FORMAT_MASK, _FORMAT_GENERATOR = 0b0100, 0b01, 0x5412, 0x537
_MASKS = (
    lambda x, y: (x + y) % 2,
    lambda _, y: y % 2,
    lambda x, _: x % 3,
    lambda x, y: (x + y) % 3,
    lambda x, y: (x // 3 + y // 2) % 2,
    lambda x, y: x * y % 2 + x * y % 3,
    lambda x, y: (x * y % 2 + x * y % 3) % 2,
    lambda x, y: ((x + y) % 2 + x * y % 3) % 2,
)
_FINDER_LIKE = ([1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1])
_QUIET_ZONE = 2
# White on black, regardless of the terminal's colours: some readers do not recognize an inverted code.
_COLOURS, _RESET = "\x1b[38;5;231;48;5;16m", "\x1b[0m"

Matrix = list[list[int]]


def modules(text: str) -> Matrix | None:
    """The modules by row, 1 for dark. None if the text is too long."""
    data = text.encode()
    version = next((each for each, (size, _) in _CODEWORDS.items() if len(data) + 2 <= size), None)
    if version is None:
        return None
    bits = "".join(f"{codeword:08b}" for codeword in _codewords(data, *_CODEWORDS[version]))
    candidates = [_matrix(version, bits, mask) for mask in range(len(_MASKS))]
    return min(candidates, key=_penalty)


def drawn(matrix: Matrix, *, colour: bool) -> str:
    """Lines for a terminal, two rows in each. Without colours it is right on a dark background."""
    edge = [0] * (len(matrix) + 2 * _QUIET_ZONE)
    rows = [edge] * _QUIET_ZONE + [[0] * _QUIET_ZONE + row + [0] * _QUIET_ZONE for row in matrix] + [edge] * _QUIET_ZONE
    # With an odd number of rows, the last line has only an upper half.
    pairs = zip(rows[::2], [*rows[1::2], [1] * len(edge)], strict=False)
    lines = ["".join("█▀▄ "[2 * upper + lower] for upper, lower in zip(*pair, strict=True)) for pair in pairs]
    return "\n".join(f"{_COLOURS}{line}{_RESET}" if colour else line for line in lines)


def _codewords(data: bytes, size: int, correction: int) -> list[int]:
    bits = f"{_BYTE_MODE:04b}{len(data):08b}" + "".join(f"{byte:08b}" for byte in data) + "0000"
    found = [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]
    found += [(0xEC, 0x11)[number % 2] for number in range(size - len(found))]
    return found + _error_correction(found, correction)


def _times(a: int, b: int) -> int:
    """The product in GF(256) with the polynomial 0x11D."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11D if a & 0x80 else 0)
        b >>= 1
    return product


def _error_correction(data: list[int], count: int) -> list[int]:
    """The remainder of the division by the Reed-Solomon generator of this degree."""
    generator, root = [*[0] * (count - 1), 1], 1
    for _ in range(count):
        shifted = [*generator[1:], 0]
        generator = [_times(coefficient, root) ^ next_ for coefficient, next_ in zip(generator, shifted, strict=True)]
        root = _times(root, 2)
    remainder = [0] * count
    for codeword in data:
        factor = codeword ^ remainder[0]
        shifted = [*remainder[1:], 0]
        remainder = [a ^ _times(factor, b) for a, b in zip(shifted, generator, strict=True)]
    return remainder


def _matrix(version: int, bits: str, mask: int) -> Matrix:
    size = 17 + 4 * version
    fixed = dict(_fixed_modules(size, version)) | dict(_format_modules(size, mask))
    matrix = [[fixed.get((x, y), 0) for x in range(size)] for y in range(size)]
    free = [(x, y) for x, y in _zigzag(size) if (x, y) not in fixed]
    for (x, y), bit in zip(free, bits.ljust(len(free), "0"), strict=True):
        matrix[y][x] = int(bit) ^ (_MASKS[mask](x, y) == 0)
    return matrix


def _fixed_modules(size: int, version: int) -> Iterator[tuple[tuple[int, int], int]]:
    for at in range(size):
        yield (6, at), 1 - at % 2
        yield (at, 6), 1 - at % 2
    if version > 1:
        yield from _square(size - 7, size - 7, 2, (1,), size)
    for centre in ((3, 3), (size - 4, 3), (3, size - 4)):
        yield from _square(*centre, 4, (2, 4), size)


def _square(x: int, y: int, radius: int, light: tuple[int, ...], size: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Concentric squares around a module; `light` are the distances of the light ones."""
    for dx in range(-radius, radius + 1):
        for dy in range(-radius, radius + 1):
            if 0 <= x + dx < size and 0 <= y + dy < size:
                yield (x + dx, y + dy), int(max(abs(dx), abs(dy)) not in light)


def _format_modules(size: int, mask: int) -> Iterator[tuple[tuple[int, int], int]]:
    data = remainder = _LEVEL_L << 3 | mask
    for _ in range(10):
        remainder = remainder << 1 ^ (remainder >> 9) * _FORMAT_GENERATOR
    bits = (data << 10 | remainder) ^ _FORMAT_MASK
    around = [(8, 0), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5), (8, 7), (8, 8), (7, 8)]
    around += [(x, 8) for x in (5, 4, 3, 2, 1, 0)]
    apart = [(size - 1 - at, 8) for at in range(8)] + [(8, size - 15 + at) for at in range(8, 15)]
    for number in range(15):
        yield around[number], bits >> number & 1
        yield apart[number], bits >> number & 1
    yield (8, size - 8), 1


def _zigzag(size: int) -> Iterator[tuple[int, int]]:
    """All modules in the order of the data: pairs of columns from the right, upwards first."""
    columns = [x for x in range(size - 1, 0, -2) if x > 6] + [5, 3, 1]
    for number, right in enumerate(columns):
        for at in range(size):
            y = at if number % 2 else size - 1 - at
            yield right, y
            yield right - 1, y


def _penalty(matrix: Matrix) -> int:
    """How hard a code is to read: runs, blocks, patterns like the corners', and an uneven share of dark modules."""
    size, total = len(matrix), 0
    for line in [*matrix, *map(list, zip(*matrix, strict=True))]:
        runs = "".join(map(str, line)).replace("01", "0 1").replace("10", "1 0").split()
        total += sum(len(run) - 2 for run in runs if len(run) >= 5)
        total += 40 * sum(line[at : at + 11] in _FINDER_LIKE for at in range(size - 10))
    for y in range(size - 1):
        total += 3 * sum(
            matrix[y][x] == matrix[y][x + 1] == matrix[y + 1][x] == matrix[y + 1][x + 1] for x in range(size - 1)
        )
    dark = sum(sum(row) for row in matrix) * 100 / size**2
    return total + 10 * int(abs(dark - 50) / 5)
