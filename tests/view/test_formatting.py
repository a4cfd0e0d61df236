"""Number formatting: Python and the page's scripts write the same text."""

import math
import random
import struct
from decimal import Decimal

import pytest

from tfviz.view.figures import formatting
from tfviz.view.figures.formatting import format_upper_bound

pytest_plugins = ["node"]
# function of both sides, its arguments, what is written
CASES = {
    "format_number": [
        ([0.3141], "0.31"), ([0.5], "0.5"), ([0.0], "0"), ([-0.0], "0"), ([1.0], "1"), ([-1.0], "−1"),
        ([0.125], "0.13"), ([-0.125], "−0.13"), ([0.375], "0.38"), ([2.5], "2.5"), ([9.96], "10"), ([12.5], "13"),
        ([-120.4], "−120"), ([1986.97], "1987"), ([1987], "1987"), ([9999], "9999"), ([9999.5], "10,000"),
        ([12345], "12,345"), ([-12345.6], "−12,346"), ([1234567], "1,234,567"), ([2147483647], "2,147,483,647"),
        ([9999999999], "9,999,999,999"), ([1e10], "1e10"), ([-1.26e20], "−1.3e20"), ([1e300], "1e300"),
        ([9.99e15], "1e16"), ([0.0001], "0.0001"), ([0.00009996], "1e−4"), ([0.000012345], "1.2e−5"),
        ([-3.1e-7], "−3.1e−7"), ([5e-324], "4.9e−324"), ([0.994], "0.99"), ([0.996], "0.996"), ([0.9996], "0.9996"),
        ([-0.9996], "−0.9996"), ([0.99999], "0.99999"), ([0.9999990], "0.999999"), ([0.99999994], "1"),
        ([1.0004], "1"), ([1.98], "2"), ([math.nan], "NaN"), ([math.inf], "∞"), ([-math.inf], "−∞"),
        ([1.23456, 4], "1.235"), ([12345.678, 4], "12,346"), ([0.0625, 3], "0.0625"), ([0.99996, 3], "0.99996"),
        ([1 / 3, 6], "0.333333"), ([1e-5, 6], "1e−5"), ([1048576, 6], "1,048,576"),
    ],
    "format_fixed": [
        ([-0.001, 2], "0.00"), ([0, 2], "0.00"), ([-1.5, 2], "−1.50"), ([0.125, 2], "0.13"), ([2, 2], "2.00"),
        ([2.6, 0], "3"), ([12345, 0], "12,345"), ([-12345.678, 2], "−12,345.68"), ([math.nan, 2], "NaN"),
        ([-math.inf, 2], "−∞"), ([1987, 0], "1987"),
    ],
    "format_aligned": [
        ([[1.19, 0.8, 0.004]], ["1.19", "0.80", "< 0.01"]), ([[0.5, 0.25, -0.001]], ["0.50", "0.25", "> −0.01"]),
        ([[3.0, 12.5]], ["3.0", "12.5"]), ([[2.0, 40.0]], ["2", "40"]), ([[0.05, 0.003]], ["0.050", "0.003"]),
        ([[149.2, 3.4]], ["149", "3"]), ([[12345.6, 1.0]], ["12,346", "1"]), ([[0.997, 0.2]], ["> 0.99", "0.20"]),
        ([[1.0, 0.2]], ["1.0", "0.2"]), ([[1.0, 0.25]], ["1.00", "0.25"]), ([[0.99999994, 0.25]], ["1.00", "0.25"]),
        ([[9.996, 1.0]], ["10", "1"]), ([[math.nan, 1.5]], ["NaN", "1.5"]), ([[0.0, 0.0]], ["0", "0"]),
        ([[1e-5, 2e-5]], ["1e−5", "2e−5"]), ([[2e10, 1.0]], ["2e10", "1"]), ([[0.996, 2.5]], ["1.0", "2.5"]),
        ([[]], []),
    ],
    "format_cell": [
        ([0.123, 1], "0.12"), ([0.125, 1], "0.13"), ([0.0049, 1], "·"), ([-0.0049, 1], "·"), ([0.005, 1], "0.01"),
        ([0.4, 1], "0.40"), ([-0.1, 0.5], "−0.10"), ([0.05, 0.1], "0.05"), ([0, 1], "0"), ([1, 1], "1"),
        ([0.994, 1], "0.99"), ([0.9996, 1], ">0.99"), ([-0.9996, 1], "<−0.99"), ([0.99999994, 1], "1.00"),
        ([17, 2000], "17"), ([1987, 2000], "1987"), ([12345, 20000], "12,345"), ([3.14159, 5], "3.1"),
        ([-3.16, 5], "−3.2"), ([1.126, 1.5], "1.1"), ([0.996, 3], "1"), ([123.456, 150], "123"),
        ([0.00126, 0.002], "0.0013"), ([math.nan, 1], "NaN"),
    ],
    "percent": [
        ([0], "0%"), ([1], "100%"), ([0.123], "12%"), ([0.0123], "1.2%"), ([0.0002], "< 0.1%"),
        ([0.001], "0.1%"), ([0.99], "99%"), ([0.994], "99%"), ([0.996], "99.6%"), ([0.9994], "99.9%"),
        ([0.0099], "0.99%"), ([0.00999], "1%"), ([0.0101], "1%"),
        ([0.9996], "> 99.9%"), ([0.99996], "> 99.9%"), ([0.99999994], "100%"),
        ([1.5], "150%"), ([-0.05], "−5%"), ([math.nan], "NaN"),
    ],
    "format_count": [
        ([1, "head"], "1 head"), ([0, "head"], "0 heads"), ([2, "query", "queries"], "2 queries"),
        ([1, "query", "queries"], "1 query"), ([12345, "token"], "12,345 tokens"),
    ],
}  # fmt: skip
FLAT = [(name, *case) for name, cases in CASES.items() for case in cases]
PAGE = {
    "format_number": "formatNumber", "format_fixed": "formatFixed", "format_aligned": "formatAligned",
    "format_cell": "formatCell", "format_count": "formatCount",
}  # fmt: skip


def call_page(node, calls):
    """What the page's functions give: numbers travel as their bytes, so that none is changed."""
    node.load("base/numbers")
    return node.evaluate(
        """calls => { const read = (x) => Array.isArray(x) ? x.map(read)
                : typeof x === "string" && x.startsWith("0x") ? Buffer.from(x.slice(2), "hex").readDoubleBE(0) : x;
            return calls.map(([name, ...given]) => globalThis[name](...given.map(read))); }""",
        calls,
    )


def encode_argument(value):
    if isinstance(value, list):
        return [encode_argument(one) for one in value]
    return f"0x{struct.pack('>d', value).hex()}" if isinstance(value, float) else value


@pytest.mark.parametrize(("name", "given", "says"), FLAT)
def test_number_is_formatted(name, given, says):
    assert getattr(formatting, name)(*given) == says


def test_page_formats_all_cases_like_python(node):
    made = call_page(node, [[PAGE.get(name, name), *map(encode_argument, given)] for name, given, _ in FLAT])
    assert made == [says for *_, says in FLAT]


def numbers(count=1500):
    """Of all sizes, ties of roundings among them, as 32 bits and as 64."""
    draw = random.Random(1)
    wide = [draw.choice((-1, 1)) * 10 ** draw.uniform(-9, 12) for _ in range(count)]
    near = [1 - 10 ** draw.uniform(-9, -1) for _ in range(count // 3)]
    ties = [draw.randrange(1, 4096) / 2 ** draw.randrange(1, 14) for _ in range(count // 3)]
    found = wide + near + ties + [float(draw.randrange(10**6)) for _ in range(50)]
    return [*found, *(struct.unpack("f", struct.pack("f", value))[0] for value in found)]


def test_page_formats_random_numbers_like_python(node):
    calls = [
        (name, value, more)
        for value in numbers()
        for name, more in (("format_number", 2), ("format_fixed", 2), ("format_cell", 2.0), ("format_cell", 1.0))
    ]
    calls += [("percent", value) for value in numbers() if abs(value) < 2]
    made = call_page(node, [[PAGE.get(name, name), *map(encode_argument, given)] for name, *given in calls])
    assert [got for got, (name, *given) in zip(made, calls) if got != getattr(formatting, name)(*given)] == []


def test_formatted_is_within_half_of_its_last_digit():
    for value in numbers():
        said = formatting.format_number(value).replace("−", "-").replace(",", "")
        mantissa, _, power = said.partition("e")
        last = Decimal(1).scaleb(int(power or 0) - len(mantissa.partition(".")[2]))
        assert abs(Decimal(said) - Decimal(value)) <= last / 2


def test_at_most_rounds_up():
    bounds = [format_upper_bound(value) for value in (0.1201, 0.12, 0.0996, 0.0, 0.00021)]
    assert bounds == ["0.13", "0.12", "0.1", "0", "0.00022"]
    assert format_upper_bound(0.0031, 1) == "0.004"
    for value in (abs(value) for value in numbers(200)):
        assert Decimal(format_upper_bound(value).replace("−", "-").replace(",", "")) >= Decimal(value) * (
            1 - Decimal("1e-9")
        )
