"""Which addresses are connected to, and which URLs are accepted, before any packet is sent. (W1-W8, W12-W17)"""

from ipaddress import ip_address, ip_network

import pytest

from hubgate.server.egress.addresses import is_allowed
from hubgate.server.egress.target import AddressNotAllowed, parse_target

EVERYTHING = [ip_network("0.0.0.0/0"), ip_network("::/0")]

PRIVATE = [
    "127.0.0.1", "127.255.255.254", "::1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.1.1",
    "100.64.0.1", "100.127.255.254", "198.18.0.1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::",
]  # fmt: skip

NEVER = [
    "0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "239.255.255.255", "240.0.0.1", "192.0.2.1", "192.88.99.1",
    "198.51.100.7", "203.0.113.9", "169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200",
    "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "::ffff:169.254.169.254", "2002:a9fe:a9fe::", "::", "::127.0.0.1",
    "::1.2.3.4", "ff02::1", "2001:db8::1", "100::1", "::ffff:0.0.0.0", "64:ff9b:1::1",
]  # fmt: skip

PUBLIC = [
    "1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "2606:4700::1111",
    "64:ff9b::101:101",
]  # fmt: skip


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses_need_the_operators_permission(text: str) -> None:
    assert not is_allowed(ip_address(text), [])
    assert is_allowed(ip_address(text), EVERYTHING)


@pytest.mark.parametrize("text", NEVER)
def test_some_addresses_are_never_allowed(text: str) -> None:
    assert not is_allowed(ip_address(text), [])
    assert not is_allowed(ip_address(text), EVERYTHING)


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed(text: str) -> None:
    assert is_allowed(ip_address(text), [])


def test_teredo_address_is_judged_by_its_embedded_client() -> None:
    # The client's address 127.0.0.1 is embedded with all bits inverted.
    assert not is_allowed(ip_address("2001:0:4136:e378:8000:63bf:80ff:fffe"), [])


def test_allow_list_opens_only_what_it_names() -> None:
    loopback = [ip_network("127.0.0.0/8")]
    assert is_allowed(ip_address("127.8.9.1"), loopback)
    assert is_allowed(ip_address("::ffff:127.0.0.1"), loopback)
    assert not is_allowed(ip_address("::1"), loopback)
    assert not is_allowed(ip_address("10.0.0.1"), loopback)


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/", "http://0177.0.0.1/", "http://127.1/", "http://0x7f.1/", "http://0x7f000001/", "http://1/",
        "http://①②⑦.⓪.⓪.①/", "http://user@host.example/", "http://user:pw@host.example/", "http://good.example\\@evil.example/",
        "http:\\\\evil.example/", "file:///etc/passwd", "gopher://x.example/", "ftp://x.example/", "//x.example/",
        "x.example", "", "http://", "http:///path", "http://x.example/\r\nX: y", "http://x.example/ y", "http://x.example/\t",
        "http://x.example:22/", "http://x.example:6379/", "http://x.example:5432", "https://x.example:25/",
        "http://x.example:99999/", "http://x.example:abc/", "http://[::1", "http://[::1]x/", "http://[fe80::1%25eth0]/",
        "http://[::1%eth0]/", "http://exa mple.example/", "http://münchen.example/", "http://x..example/", "http://-x.example/",
        "http://x.example/#frag", "http://x.example/#", "http://" + "a" * 64 + ".example/",
        "http://x.example/" + "a" * 2048,
        "http://127.0.0.1.2/", "http://127.0.0.256/", "javascript:alert(1)", "http://x.example:0/", "http://{x}.example/",
    ],
)  # fmt: skip
def test_unsafe_urls_are_rejected(url: str) -> None:
    with pytest.raises(AddressNotAllowed):
        parse_target(url)


@pytest.mark.parametrize(
    ("url", "host", "port", "request_line", "host_header"),
    [
        ("http://x.example", "x.example", 80, "/", "x.example"),
        ("https://X.Example./a?b=c", "x.example", 443, "/a?b=c", "x.example"),
        ("https://x.example:8443/a%20b", "x.example", 8443, "/a%20b", "x.example:8443"),
        ("http://127.0.0.1:8080/hook", "127.0.0.1", 8080, "/hook", "127.0.0.1:8080"),
        ("http://[2606:4700::1111]:8080/", "2606:4700::1111", 8080, "/", "[2606:4700::1111]:8080"),
        ("http://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example", 80, "/", "xn--mnchen-3ya.example"),
        ("http://a_b.example:80/", "a_b.example", 80, "/", "a_b.example"),
        ("http://localhost:3000?x", "localhost", 3000, "/?x", "localhost:3000"),
    ],
)
def test_valid_urls_are_accepted(url: str, host: str, port: int, request_line: str, host_header: str) -> None:
    target = parse_target(url)
    assert (target.host, target.port, target.path_and_query, target.host_header) == (
        host,
        port,
        request_line,
        host_header,
    )
