"""Charts as geometry for inline SVG: bars of deliveries, and lines of success rate and of time to answer.

Every chart is 100 units high and 10 units wide for each part of the time; the template stretches it.
"""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.webhooks.activity.charts import SPANS, Activity, Part, Span

HEIGHT, STEP = 100, 10
SPARK_WIDTH, SPARK_HEIGHT = 96, 24
# Of the bars, from the bottom up: the attribute of a part, and the class for its colour.
STACK = (("delivered", "ok"), ("failed", "danger"), ("retrying", "warn"), ("waiting", "accent"), ("skipped", "none"))


class Bar(Struct, frozen=True):
    x: int
    y: float
    height: float
    kind: str


class Line(Struct, frozen=True):
    path: str
    kind: str


class Charts(Struct, frozen=True):
    activity: Activity
    width: int
    bars: Sequence[Bar]
    # The highest bar, and the longest time in milliseconds.
    most: int
    longest: int
    success: Line
    times: Sequence[Line]


def span_named(name: str) -> Span:
    """The span with this name; the first one for an unknown name."""
    return next((span for span in SPANS if span.name == name), SPANS[0])


def draw(activity: Activity) -> Charts:
    parts = activity.parts
    most = max((part.total for part in parts), default=0)
    longest = max((part.slowest_ms or 0 for part in parts), default=0)
    return Charts(
        activity,
        STEP * len(parts),
        [bar for place, part in enumerate(parts) for bar in _bars(place, part, most)],
        most,
        longest,
        Line(_path([part.success_percent for part in parts], 100), "ok"),
        [
            Line(_path([part.slowest_ms for part in parts], longest), "none"),
            Line(_path([part.median_ms for part in parts], longest), "accent"),
        ],
    )


def _bars(place: int, part: Part, most: int) -> list[Bar]:
    bars, top = [], float(HEIGHT)
    stored = part.total - sum(getattr(part, name) for name, _ in STACK)
    for count, kind in [(stored, "accent"), *((getattr(part, name), kind) for name, kind in STACK)]:
        if count:
            height = round(HEIGHT * count / most, 2)
            top = round(top - height, 2)
            bars.append(Bar(place * STEP + 1, top, height, kind))
    return bars


def _path(values: Sequence[float | None], top: float) -> str:
    """A line in steps, interrupted where there is no value. Its ends are inside the chart, so that nothing is cut."""
    found: list[str] = []
    before: float | None = None
    for place, value in enumerate(values):
        if value is not None:
            y = round(HEIGHT - 2 - (HEIGHT - 4) * (value / top if top else 0), 1)
            found.append(f"{f'M{place * STEP} {y}' if before is None else f'V{y}'}H{(place + 1) * STEP}")
        before = value
    return "".join(found)


class Spark(Struct, frozen=True):
    """A line of 96 by 24 pixels, with a pixel of room around it, and the sum of its values."""

    path: str
    sum: int


def spark(totals: Sequence[int] | None) -> Spark | None:
    if not totals:
        return None
    most, last = max(totals), max(len(totals) - 1, 1)
    points = [
        f"{1 + (SPARK_WIDTH - 2) * place / last:.4g} "
        f"{SPARK_HEIGHT - 1 - (SPARK_HEIGHT - 2) * (total / most if most else 0):.4g}"
        for place, total in enumerate(totals)
    ]
    return Spark("M" + "L".join(points), sum(totals))
