//! The published size tables: piecewise linear between their rows, on a grid of 1/21 RU for reads
//! and 4/21 RU for writes.

/// (KB, read units) of the published table.
const READ: [(u64, u64); 12] = [
    (1, 21),
    (2, 22),
    (4, 24),
    (8, 28),
    (16, 35),
    (32, 46),
    (64, 100),
    (128, 209),
    (256, 426),
    (512, 860),
    (1024, 3064),
    (2048, 6128),
];

/// (KB, quarter write quanta) of the published table; the last two rows are not whole quanta.
const WRITE: [(u64, u64); 12] = [
    (1, 26 * 4),
    (2, 33 * 4),
    (4, 35 * 4),
    (8, 37 * 4),
    (16, 50 * 4),
    (32, 59 * 4),
    (64, 119 * 4),
    (128, 253 * 4),
    (256, 516 * 4),
    (512, 969 * 4),
    (1024, 13_125),
    (2048, 26_250),
];

/// Read units of an item, rounded down.
pub fn read_base(bytes: usize) -> u64 {
    let (numerator, denominator) = interpolate(&READ, bytes as u64);
    numerator / denominator
}

/// Write quanta of an item, rounded half up.
pub fn write_base(bytes: usize) -> u64 {
    let (numerator, denominator) = interpolate(&WRITE, bytes as u64);
    (2 * numerator + 4 * denominator) / (8 * denominator)
}

/// The segment of a table that holds `bytes`, as a fraction: (numerator, denominator).
fn interpolate(table: &[(u64, u64)], bytes: u64) -> (u64, u64) {
    let (first_kb, first) = table[0];
    if bytes <= first_kb * 1024 {
        return (first, 1);
    }
    let at = table.iter().position(|(kb, _)| bytes <= kb * 1024).unwrap_or(table.len() - 1);
    let ((a, b), (c, d)) = (table[at - 1], table[at]);
    let width = (c - a) * 1024;
    (b * width + (d - b) * (bytes - a * 1024), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_tables_are_met_exactly() {
        let reads = [21, 22, 24, 28, 35, 46, 100, 209, 426, 860, 3064, 6128];
        // 3281.25 and 6562.5 quanta are the round 625 and 1250 RU.
        let writes = [26, 33, 35, 37, 50, 59, 119, 253, 516, 969, 3281, 6563];
        for (at, (read, write)) in reads.into_iter().zip(writes).enumerate() {
            let bytes = 1024 << at;
            assert_eq!((read_base(bytes), write_base(bytes)), (read, write), "{bytes} bytes");
        }
        assert_eq!((read_base(1), write_base(1)), (21, 26));
    }

    #[test]
    fn reads_round_down_and_writes_round_half_up() {
        assert_eq!((read_base(1025), read_base(2047), read_base(2048)), (21, 21, 22));
        // Seven quanta between 1 KB and 2 KB: the first half is 73.14 bytes behind 1 KB.
        assert_eq!((write_base(1024 + 73), write_base(1024 + 74)), (26, 27));
        assert_eq!((write_base(1746), write_base(1810)), (31, 31));
        assert_eq!((write_base(1868), write_base(1899)), (32, 32));
    }
}
