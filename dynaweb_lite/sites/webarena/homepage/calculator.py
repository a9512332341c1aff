"""Arithmetic as the calculator reads it: numbers, + - * / ^ and brackets; nothing of what is typed is executed."""

from __future__ import annotations

import re
from fractions import Fraction

MAX_LENGTH, MAX_POWER, MAX_DIGITS, SHOWN_DIGITS = 120, 256, 300, 12
_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+|\*\*|[-+*/^()×÷%])")


class CalculationError(ValueError):
    """What was typed cannot be calculated; the message says why."""


def calculate(text: str) -> str:
    """The value of an expression as the calculator shows it. Raises CalculationError."""
    if len(text) > MAX_LENGTH:
        raise CalculationError(f"Please stay below {MAX_LENGTH} characters.")
    tokens = _tokens(text)
    value, rest = _sum(tokens)
    if rest:
        raise CalculationError(f"Cannot read this from “{rest[0]}” on.")
    return _shown(value)


def _tokens(text: str) -> list[str]:
    tokens, end = [], 0
    while text[end:].strip():
        if not (match := _TOKEN.match(text, end)):
            raise CalculationError(f"Cannot read “{text[end:].strip()[0]}”: use numbers, + - * / ^ and brackets.")
        tokens.append({"×": "*", "÷": "/", "**": "^"}.get(match[1], match[1]))
        end = match.end()
    return tokens


def _sum(tokens: list[str]) -> tuple[Fraction, list[str]]:
    value, tokens = _product(tokens)
    while tokens and tokens[0] in "+-":
        sign, (other, tokens) = tokens[0], _product(tokens[1:])
        value = value + other if sign == "+" else value - other
    return value, tokens


def _product(tokens: list[str]) -> tuple[Fraction, list[str]]:
    value, tokens = _signed(tokens)
    while tokens and tokens[0] in "*/":
        sign, (other, tokens) = tokens[0], _signed(tokens[1:])
        if sign == "/" and other == 0:
            raise CalculationError("Cannot divide by zero.")
        value = value * other if sign == "*" else value / other
    return value, tokens


def _signed(tokens: list[str]) -> tuple[Fraction, list[str]]:
    if tokens and tokens[0] in "+-":
        value, rest = _signed(tokens[1:])
        return (-value if tokens[0] == "-" else value), rest
    return _power(tokens)


def _power(tokens: list[str]) -> tuple[Fraction, list[str]]:
    value, tokens = _atom(tokens)
    while tokens and tokens[0] == "%":
        value, tokens = value / 100, tokens[1:]
    if tokens and tokens[0] == "^":
        power, tokens = _signed(tokens[1:])
        value = _raise(value, power)
    return value, tokens


def _raise(value: Fraction, power: Fraction) -> Fraction:
    digits = len(str(max(abs(value.numerator), value.denominator)))
    if power.denominator != 1 or abs(power) > MAX_POWER or digits * abs(power) > MAX_DIGITS:
        raise CalculationError("Powers must be whole and small.")
    if value == 0 and power < 0:
        raise CalculationError("Cannot divide by zero.")
    return value**power.numerator


def _atom(tokens: list[str]) -> tuple[Fraction, list[str]]:
    if not tokens:
        raise CalculationError("Something is missing at the end.")
    if tokens[0] == "(":
        value, rest = _sum(tokens[1:])
        if not rest or rest[0] != ")":
            raise CalculationError("A bracket is not closed.")
        return value, rest[1:]
    if tokens[0][0] not in "0123456789.":
        raise CalculationError(f"Cannot read this from “{tokens[0]}” on.")
    return Fraction(tokens[0]), tokens[1:]


def _shown(value: Fraction) -> str:
    """A whole number in full, another rounded to `SHOWN_DIGITS` digits."""
    if value.denominator == 1 and abs(value) < 10**15:
        return str(value.numerator)
    try:
        return f"{float(value):.{SHOWN_DIGITS}g}"
    except OverflowError:
        raise CalculationError("The result is too large.") from None
