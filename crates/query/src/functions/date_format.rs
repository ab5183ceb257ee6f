//! `DateTimeFormat`: the custom date formats of .NET, in the invariant culture and UTC.

use super::dates::Civil;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Digits of a fraction of a second.
const FRACTION_DIGITS: usize = 7;

/// A moment as the pattern says; `None` if the pattern is none.
pub(super) fn write(civil: &Civil, pattern: &str) -> Option<String> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some(&c) = pattern.get(at) {
        match c {
            '\\' => {
                out.push(*pattern.get(at + 1)?);
                at += 2;
            }
            '\'' | '"' => at += quoted(&pattern[at..], &mut out)?,
            // In front of a specifier that stands alone.
            '%' if pattern.get(at + 1).is_some_and(|next| *next != '%') => at += 1,
            '%' => return None,
            _ => {
                let run = pattern[at..].iter().take_while(|other| **other == c).count();
                specified(civil, c, run, &mut out)?;
                at += run;
            }
        }
    }
    Some(out)
}

/// Copies what is between quotes, in which a backslash quotes, too; how much of the pattern that is.
fn quoted(pattern: &[char], out: &mut String) -> Option<usize> {
    let mut at = 1;
    loop {
        match *pattern.get(at)? {
            c if c == pattern[0] => return Some(at + 1),
            '\\' => {
                out.push(*pattern.get(at + 1)?);
                at += 2;
            }
            c => {
                out.push(c);
                at += 1;
            }
        }
    }
}

/// Writes what a character stands for, so many times in a row.
fn specified(civil: &Civil, c: char, run: usize, out: &mut String) -> Option<()> {
    let padded = |number: i64, digits: usize| format!("{number:0digits$}");
    let text = match (c, run) {
        ('d', 1 | 2) => padded(civil.day, run),
        ('d', 3) => DAYS[civil.day_of_week()][..3].to_owned(),
        ('d', _) => DAYS[civil.day_of_week()].to_owned(),
        ('M', 1 | 2) => padded(civil.month, run),
        ('M', 3) => MONTHS[civil.month as usize - 1][..3].to_owned(),
        ('M', _) => MONTHS[civil.month as usize - 1].to_owned(),
        ('y', 1 | 2) => padded(civil.year % 100, run),
        ('y', _) => {
            out.extend(std::iter::repeat_n('0', run.saturating_sub(4)));
            padded(civil.year, run.min(4))
        }
        ('H', _) => padded(civil.hour(), run.min(2)),
        ('h', _) => padded((civil.hour() + 11) % 12 + 1, run.min(2)),
        ('m', _) => padded(civil.minute(), run.min(2)),
        ('s', _) => padded(civil.second(), run.min(2)),
        ('t', _) => ["AM", "PM"][usize::from(civil.hour() >= 12)][..run.min(2)].to_owned(),
        ('f', 1..=FRACTION_DIGITS) => padded(civil.fraction(), FRACTION_DIGITS)[..run].to_owned(),
        ('F', 1..=FRACTION_DIGITS) => {
            let digits = padded(civil.fraction(), FRACTION_DIGITS);
            let digits = digits[..run].trim_end_matches('0');
            if digits.is_empty() && out.ends_with('.') {
                out.pop();
            }
            digits.to_owned()
        }
        ('f' | 'F', _) => return None,
        ('g', _) => "A.D.".to_owned(),
        ('K', _) => "Z".repeat(run),
        ('z', 1) => "+0".to_owned(),
        ('z', 2) => "+00".to_owned(),
        ('z', _) => "+00:00".to_owned(),
        _ => std::iter::repeat_n(c, run).collect(),
    };
    out.push_str(&text);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifiers() {
        // A Wednesday.
        let check = |text: &str, pattern: &str, expect: Option<&str>| {
            let civil = Civil::from_ticks(super::super::dates::parse(text).unwrap());
            assert_eq!(write(&civil, pattern).as_deref(), expect, "{pattern}");
        };
        let afternoon = "2023-04-05T16:07:08.25Z";
        for (pattern, expect) in [
            ("yyyy-MM-dd HH:mm:ss", "2023-04-05 16:07:08"),
            ("y yy yyy yyyyy", "23 23 2023 02023"),
            ("d dd ddd dddd", "5 05 Wed Wednesday"),
            ("M MM MMM MMMM", "4 04 Apr April"),
            ("H HH h hh t tt", "16 16 4 04 P PM"),
            ("m mm s ss", "7 07 8 08"),
            ("s.fff ss.fffffff", "8.250 08.2500000"),
            ("ss.FFF", "08.25"),
            ("%d", "5"),
            ("g K z zz zzz", "A.D. Z +0 +00 +00:00"),
            (r"\To\da\y i\s dddd", "Today is Wednesday"),
            ("'day' d \"mo\\\"nth\" M", "day 5 mo\"nth 4"),
            ("yyyy/MM/dd, Qu", "2023/04/05, Qu"),
            ("", ""),
        ] {
            check(afternoon, pattern, Some(expect));
        }
        for wrong in ["'open", "ffffffff", "x\\", "%", "d%%"] {
            check(afternoon, wrong, None);
        }
        let long = write(&Civil::from_ticks(0), &"y".repeat(100_000)).unwrap();
        assert!(long.len() == 100_000 && long.ends_with("001970"));
        check("2023-04-05T00:00:00Z", "h tt ss.FFF|F", Some("12 AM 00|"));
        check("2023-04-05T12:00:00Z", "hh t", Some("12 P"));
    }
}
