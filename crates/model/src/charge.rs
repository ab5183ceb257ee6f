//! Request charges: exact integers, so that sums depend on neither order nor platform.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// A price in request units, kept in units of 1/2,100,000 RU.
///
/// The grid of published point charges is 1/21 RU and that of writes 4/21 RU; both are whole here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestCharge(u64);

impl RequestCharge {
    /// Nothing.
    pub const ZERO: RequestCharge = RequestCharge(0);
    /// 1/21 RU: the grid of reads.
    pub const READ_UNIT: RequestCharge = RequestCharge(100_000);
    /// 4/21 RU: the grid of writes, and the price of one index-term change.
    pub const WRITE_QUANTUM: RequestCharge = RequestCharge(400_000);
    /// One request unit.
    pub const ONE: RequestCharge = RequestCharge(2_100_000);

    /// A charge of so many 1/2,100,000 RU.
    pub const fn from_raw(raw: u64) -> RequestCharge {
        RequestCharge(raw)
    }

    /// The charge in 1/2,100,000 RU.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The charge in RU, for metrics and JSON bodies: the same two decimals as the text.
    pub fn as_f64(self) -> f64 {
        self.hundredths() as f64 / 100.0
    }

    /// Rounded half up to hundredths of a request unit.
    const fn hundredths(self) -> u64 {
        (self.0 + 10_500) / 21_000
    }
}

/// The text of `x-ms-request-charge`: two decimals, trailing zeros dropped.
///
/// ```
/// use model::RequestCharge;
/// assert_eq!((RequestCharge::WRITE_QUANTUM * 30).to_string(), "5.71");
/// assert_eq!(RequestCharge::ONE.to_string(), "1");
/// assert_eq!((RequestCharge::ONE * 5 + RequestCharge::from_raw(1_050_000)).to_string(), "5.5");
/// ```
impl fmt::Display for RequestCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.hundredths() / 100, self.hundredths() % 100);
        match part {
            0 => write!(f, "{whole}"),
            p if p % 10 == 0 => write!(f, "{whole}.{}", p / 10),
            p => write!(f, "{whole}.{p:02}"),
        }
    }
}

impl Add for RequestCharge {
    type Output = RequestCharge;
    fn add(self, other: RequestCharge) -> RequestCharge {
        RequestCharge(self.0 + other.0)
    }
}

impl AddAssign for RequestCharge {
    fn add_assign(&mut self, other: RequestCharge) {
        self.0 += other.0;
    }
}

impl Mul<u64> for RequestCharge {
    type Output = RequestCharge;
    fn mul(self, times: u64) -> RequestCharge {
        RequestCharge(self.0 * times)
    }
}

impl Sum for RequestCharge {
    fn sum<I: Iterator<Item = RequestCharge>>(charges: I) -> RequestCharge {
        charges.fold(RequestCharge::ZERO, Add::add)
    }
}
