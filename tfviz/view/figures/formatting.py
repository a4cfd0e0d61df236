"""Formatting of numbers, percentages, counts and sizes as text, by default with two significant digits.

Integers, and the integer parts of other numbers, are always written in full. The page has the same rules
(`js/base/numbers.js`); both are tested on the same cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_HALF_UP, Context, Decimal
from typing import SupportsFloat

from tfviz.look import AttentionMaps

EXACT_CONTEXT = Context(prec=400)  # the largest float has 309 digits before the point
MIN_LARGE, MIN_FIXED = 1e10, 1e-4  # numbers from MIN_LARGE on, and below MIN_FIXED, are written with a power of ten
MIN_GROUPED = 10_000  # numbers from here on have a thousands separator; a year has none
MAX_NINES = 6  # maximum decimals to distinguish a share from 1


def format_number(value: SupportsFloat, digits: int = 2) -> str:
    """Format a number with this many significant digits, without trailing zeros.

    A number below 1 gets more digits rather than read as 1, unless it equals 1 within float32 rounding.

    >>> tuple(map(format_number, (0.3141, -120.4, 0.0, 0.9996, 1987, 12345)))
    ('0.31', '−120', '0', '0.9996', '1987', '12,345')
    """
    value = float(value)
    if not math.isfinite(value):
        return "NaN" if value != value else "∞" if value > 0 else "−∞"
    size = abs(value)
    sign = "−" if value < 0 else ""
    if size == 0:
        return "0"
    if not MIN_FIXED <= size < MIN_LARGE:
        power = math.floor(Decimal(size).log10())
        mantissa = _rounded(Decimal(size).scaleb(-power), digits - 1)
        power, mantissa = (power + 1, mantissa / 10) if mantissa >= 10 else (power, mantissa)
        return f"{sign}{_stripped(mantissa)}e{f'{power}'.replace('-', '−')}"
    exact = Decimal(size)
    decimals = max(0, digits - 1 - math.floor(exact.log10()))
    rounded = _rounded(exact, decimals)
    while rounded == 1 != exact and size < 1 and decimals < MAX_NINES:
        decimals += 1
        rounded = _rounded(exact, decimals)
    return sign + _stripped(exact if exact == exact.to_integral_value() else rounded)


def format_fixed(value: float, decimals: int) -> str:
    """Format a number with exactly this many decimals.

    >>> format_fixed(-0.001, 2), format_fixed(-1.5, 2), format_fixed(12345, 0)
    ('0.00', '−1.50', '12,345')
    """
    if not math.isfinite(value):
        return format_number(value)
    rounded = _rounded(Decimal(value), decimals)
    return f"{'−' if rounded < 0 else ''}{_grouped(f'{abs(rounded):f}')}"


def format_aligned(values: Sequence[float]) -> list[str]:
    """Format the numbers of a column with the same number of decimals.

    The largest number gets three significant digits, or two if it is below 1. Decimals that are 0 in all numbers are
    omitted.

    >>> tuple(map(format_aligned, ([1.19, 0.8, 0.004], [0.5, 0.25], [3.0, 12.5], [2.0, 40.0])))
    (['1.19', '0.80', '< 0.01'], ['0.50', '0.25'], ['3.0', '12.5'], ['2', '40'])
    """
    finite = [Decimal(float(value)) for value in values if math.isfinite(value)]
    top = max(map(abs, finite), default=Decimal(0))
    if not MIN_FIXED <= top < MIN_LARGE:
        return [format_number(value) for value in values]
    power = math.floor(top.log10())
    most = max(0, (1 if power < 0 else 2) - power)
    nearly_one = top <= 1 and any(1 - value > 0.5 * 10**-MAX_NINES and _rounded(value, most) == 1 for value in finite)
    fewest = most if nearly_one else 0  # "> 0.99" needs its decimals
    decimals = next(n for n in range(fewest, most + 1) if all(_rounded(v, n) == _rounded(v, most) for v in finite))
    return [format_in_column(float(value), decimals, bounded=top <= 1) for value in values]


def format_in_column(value: float, decimals: int, bounded: bool = False) -> str:
    """Format a number with this many decimals, or as a bound if it would round to 0 or, if `bounded`, to 1."""
    if not math.isfinite(value) or abs(value) >= MIN_LARGE:
        return format_number(value, 3)
    rounded, least = _rounded(Decimal(value), decimals), 10**-decimals
    if value and rounded == 0:
        return f"< {format_fixed(least, decimals)}" if value > 0 else f"> −{format_fixed(least, decimals)}"
    if bounded and decimals and rounded == 1 > value + 0.5 * 10**-MAX_NINES:
        return f"> {format_fixed(1 - least, decimals)}"
    return format_fixed(value, decimals)


def format_cell(value: float, limit: float) -> str:
    """Format the number of a heatmap's cell, with decimals that fit the scale's limit; numbers near 0 become a dot.

    Integers are written in full.

    >>> format_cell(0.123, 1), format_cell(0.4, 1), format_cell(0.004, 1), format_cell(0.9996, 1), format_cell(17, 2000)
    ('0.12', '0.40', '·', '>0.99', '17')
    """
    if not math.isfinite(value) or float(value).is_integer():
        return format_number(value)
    size = abs(value)
    if size < limit / 200:
        return "·"
    rounded = _rounded(Decimal(size), 2 - math.floor(math.log10(limit)))
    if rounded == 1 and limit <= 1 and size < 1 - 0.5 * 10**-MAX_NINES:
        return ">0.99" if value > 0 else "<−0.99"
    if 0.1 < limit <= 1:  # two decimals for all weights
        return format_fixed(value, 2)
    return format_number(float(rounded) * (-1 if value < 0 else 1))


def unit_suffix(unit: str) -> str:
    """Return the suffix of a number with this unit: "%" without a space, other units after a no-break space.

    >>> unit_suffix("%"), unit_suffix("GB"), unit_suffix("")
    ('%', '\\xa0GB', '')
    """
    return unit if unit in ("", "%") else f"\N{NO-BREAK SPACE}{unit}"


def percent(share: float) -> str:
    """Format a share as a percentage; only 0 and 1 (within float32 rounding) become 0% and 100%.

    >>> percent(0.123), percent(0.9996), percent(1.0), percent(0.0002), percent(0.999999)
    ('12%', '> 99.9%', '100%', '< 0.1%', '> 99.9%')
    """
    if 0 < share < 0.001:
        return "< 0.1%"
    if 0.9995 <= share < 1 - 0.5 * 10**-MAX_NINES:
        return "> 99.9%"
    if not math.isfinite(share):
        return format_number(share)
    if 0.99 < 100 * share < 1:  # may round to 1%, which unlike 100% is no bound
        return f"{_stripped(_rounded(Decimal(100 * share), 2))}%"
    hundredths = Decimal(share) * 100
    if not 99 < hundredths < 100:
        return f"{format_number(100 * share)}%"
    decimals = next((n for n in (0, 1) if _rounded(hundredths, n) < 100), 0)
    return f"{_stripped(_rounded(hundredths, decimals))}%"


def format_step(value: float, step: float) -> str:
    """Format a slider's value with as many decimals as its step has, or more if the value needs them.

    >>> format_step(2.5, 0.05), format_step(1987, 1), format_step(0.125, 0.1)
    ('2.50', '1987', '0.125')
    """
    if abs(value) >= MIN_LARGE:
        return format_number(value, 6)
    exponent = Decimal(repr(step)).normalize().as_tuple().exponent
    decimals = min(10, max(0, -int(exponent)))
    near = abs(float(_rounded(Decimal(value), decimals)) - value) <= 1e-6 * abs(value)
    return format_fixed(value, decimals) if near else format_number(value, 6)


def format_upper_bound(value: float, digits: int = 2) -> str:
    """Format an upper bound with this many significant digits, rounded up.

    >>> format_upper_bound(0.1201), format_upper_bound(0.0)
    ('0.13', '0')
    """
    if not 0 < value < math.inf:
        return format_number(value)
    decimals = digits - 1 - math.floor(math.log10(value))
    return format_number(float(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING)), digits)


def format_count(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun.

    >>> format_count(1, "head"), format_count(12345, "token"), format_count(2, "query", "queries")
    ('1 head', '12,345 tokens', '2 queries')
    """
    return f"{format_number(count)} {one if count == 1 else many or f'{one}s'}"


def format_map_size(queries: int, keys: int) -> str:
    """Format the size of an attention map: its numbers of queries and keys."""
    return f"{format_count(queries, 'query', 'queries')} x {format_count(keys, 'key')}"


def maps_size(maps: AttentionMaps) -> str:
    """Format the shape of attention maps, followed by their remarks."""
    layers, heads, queries, keys = maps.shape
    return (
        f"AttentionMaps: {sheet_size(layers, heads).replace('×', 'x')} x {format_map_size(queries, keys)}{maps.remarks}"
    )


def sheet_size(layers: int, heads: int) -> str:
    """Format the numbers of layers and heads."""
    return f"{format_count(layers, 'layer')} × {format_count(heads, 'head')}"


def _rounded(value: Decimal, decimals: int) -> Decimal:
    """Round to this many decimals, halves away from 0, as in a page."""
    return value.quantize(Decimal(1).scaleb(-max(0, decimals)), ROUND_HALF_UP, EXACT_CONTEXT)


def _stripped(value: Decimal) -> str:
    """Strip trailing zeros."""
    text = f"{value:f}"
    return _grouped(text.rstrip("0").rstrip(".") if "." in text else text)


def _grouped(text: str) -> str:
    """Group digits by thousands, from five digits on."""
    integer, point, rest = text.partition(".")
    return f"{int(integer):,}{point}{rest}" if int(integer) >= MIN_GROUPED else text


def shorten(text: str, max_length: int) -> str:
    """Truncate text to this many characters, the last of which is an ellipsis if some are omitted."""
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"
