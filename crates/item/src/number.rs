//! Number text: binary64 as ECMAScript prints it.
//!
//! A body's numbers are reprinted on ingest, so equal numbers have equal text (`1.0`, `1e0` and
//! `1` are all `1`). Most numbers in bodies already are canonical. A decimal of at most 15
//! significant digits is the shortest text of its double, since no two such decimals share one;
//! if it also has the form ECMAScript would choose, it is copied without converting it.

/// Appends the ECMAScript text of `number`.
///
/// `-0` is `0`. `NaN` and the infinities have text too, for conversions to strings, but JSON has
/// none for them: JSON writers ask `is_finite` first.
pub fn write_number(out: &mut Vec<u8>, number: f64) {
    let integer = number as i64;
    if integer as f64 == number && integer.unsigned_abs() < 1 << 53 {
        write_integer(out, integer);
    } else {
        out.extend_from_slice(ryu_js::Buffer::new().format(number).as_bytes());
    }
}

/// Digits a decimal may have and still be the shortest text of its double.
const EXACT_DIGITS_MAX: usize = 15;
/// Zeros after the point beyond which ECMAScript changes to an exponent.
const SMALL_ZEROS_MAX: usize = 5;

/// The parts of a number in JSON text, found by the scanner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Literal<'a> {
    /// The whole text.
    pub text: &'a [u8],
    /// Digits before the point.
    pub whole_digits: usize,
    /// Digits after the point.
    pub fraction_digits: usize,
    pub has_exponent: bool,
}

/// Appends the canonical text of a number. `None` if it is beyond the range of binary64.
pub(crate) fn write_literal(out: &mut Vec<u8>, literal: Literal<'_>) -> Option<()> {
    if literal.is_canonical() {
        out.extend_from_slice(literal.text);
        return Some(());
    }
    let number = std::str::from_utf8(literal.text).ok()?.parse::<f64>().ok()?;
    number.is_finite().then(|| write_number(out, number))
}

/// Reads canonical number text.
pub(crate) fn read(text: &[u8]) -> Option<f64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1.0, digits),
        digits => (1.0, digits),
    };
    if !digits.is_empty()
        && digits.len() <= EXACT_DIGITS_MAX
        && digits.iter().all(u8::is_ascii_digit)
    {
        let integer = digits.iter().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        return Some(sign * integer as f64);
    }
    std::str::from_utf8(text).ok()?.parse::<f64>().ok().filter(|number| number.is_finite())
}

impl Literal<'_> {
    fn is_canonical(self) -> bool {
        let is_short = self.whole_digits + self.fraction_digits <= EXACT_DIGITS_MAX;
        is_short && !self.has_exponent && self.text != b"-0" && self.fraction_is_canonical()
    }

    fn fraction_is_canonical(self) -> bool {
        if self.fraction_digits == 0 {
            return true;
        }
        let (whole, fraction) = self.text.split_at(self.text.len() - self.fraction_digits);
        let zeros = fraction.iter().take_while(|&&digit| digit == b'0').count();
        let is_small = zeros > SMALL_ZEROS_MAX && matches!(whole, b"0." | b"-0.");
        !fraction.ends_with(b"0") && !is_small
    }
}

fn write_integer(out: &mut Vec<u8>, integer: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = integer.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if integer < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(number: f64, expect: &str) {
        let mut out = Vec::new();
        write_number(&mut out, number);
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }

    #[test]
    fn numbers_print_as_in_ecmascript() {
        check(0.0, "0");
        check(-0.0, "0");
        check(1.0, "1");
        check(-17.0, "-17");
        check(0.1 + 0.2, "0.30000000000000004");
        check(9007199254740991.0, "9007199254740991");
        check(-9007199254740993.0, "-9007199254740992");
        check(1e20, "100000000000000000000");
        check(1e21, "1e+21");
        check(1e-6, "0.000001");
        check(1e-7, "1e-7");
        check(f64::MAX, "1.7976931348623157e+308");
        check(5e-324, "5e-324");
        check(f64::NAN, "NaN");
        check(f64::NEG_INFINITY, "-Infinity");
    }

    #[test]
    fn canonical_text_reads_back() {
        for text in ["0", "-1", "999999999999999", "1000000000000000", "1.5", "1e+21", "-5e-324"] {
            assert_eq!(read(text.as_bytes()), Some(text.parse().unwrap()));
        }
        for text in ["", "-", "x", "1x", "NaN", "inf", "1e999"] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
