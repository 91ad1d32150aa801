from hypothesis import given
from hypothesis import strategies as st

from hubgate.server.paging import PageRequest, decode_cursor, encode_cursor, page_of


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_cursor_round_trips(number: int, text: str) -> None:
    assert decode_cursor(encode_cursor((number, text)), (int, str)) == (number, text)


@given(st.integers(1, 20), st.integers(0, 60))
def test_pages_cover_everything_exactly_once(limit: int, count: int) -> None:
    rows, seen, request = list(range(count)), [], PageRequest(limit)
    while True:
        after = int(request.after[0]) if request.after else -1
        page = page_of([row for row in rows if row > after][: request.fetch_limit], request, lambda row: (row,))
        seen += page.items
        if page.next_cursor is None:
            break
        request = PageRequest(limit, decode_cursor(page.next_cursor, (int,)))
    assert seen == rows
