//! LIKE patterns.

/// A pattern, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character that stands for itself.
    Char(char),
    /// `[abc]`, `[^a-f]`: ranges of characters.
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl Pattern {
    /// Reads a pattern. A bracket that is never closed stands for itself.
    pub fn new(text: &str, escape: Option<char>) -> Pattern {
        let chars: Vec<char> = text.chars().collect();
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            let part = match c {
                c if Some(c) == escape && at < chars.len() => {
                    at += 1;
                    Part::Char(chars[at - 1])
                }
                '%' => Part::Any,
                '_' => Part::One,
                '[' => match set(&chars[at..]) {
                    Some((set, length)) => {
                        at += length;
                        set
                    }
                    None => Part::Char('['),
                },
                c => Part::Char(c),
            };
            parts.push(part);
        }
        Pattern { parts }
    }

    /// Whether the whole text fits.
    ///
    /// Remembers only the last `%`: what an earlier one could take, a later one can too.
    pub fn matches(&self, text: &str) -> bool {
        let chars: Vec<char> = text.chars().collect();
        let (mut at, mut part) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < chars.len() {
            match self.parts.get(part) {
                Some(Part::Any) => {
                    retry = Some((part + 1, at));
                    part += 1;
                }
                Some(one) if one.fits(chars[at]) => {
                    at += 1;
                    part += 1;
                }
                _ => match retry {
                    Some((after, from)) => {
                        retry = Some((after, from + 1));
                        (part, at) = (after, from + 1);
                    }
                    None => return false,
                },
            }
        }
        self.parts[part..].iter().all(|part| *part == Part::Any)
    }

    /// The text every match begins with.
    pub fn prefix(&self) -> String {
        let literal = self.parts.iter().map_while(|part| match part {
            Part::Char(c) => Some(*c),
            Part::Any | Part::One | Part::Set { .. } => None,
        });
        literal.collect()
    }
}

impl Part {
    fn fits(&self, c: char) -> bool {
        match self {
            Part::Any => false,
            Part::One => true,
            Part::Char(own) => *own == c,
            Part::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// The set after an opening bracket, and its length with the closing one.
fn set(chars: &[char]) -> Option<(Part, usize)> {
    let close = chars.iter().position(|c| *c == ']')?;
    let (negated, inside) = match &chars[..close] {
        ['^', rest @ ..] if !rest.is_empty() => (true, rest),
        inside => (false, inside),
    };
    let mut ranges = Vec::new();
    let mut rest = inside;
    while let [first, tail @ ..] = rest {
        if let ['-', last, tail @ ..] = tail {
            ranges.push((*first, *last));
            rest = tail;
        } else {
            ranges.push((*first, *first));
            rest = tail;
        }
    }
    Some((Part::Set { negated, ranges }, close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a%", "a", true),
            ("%b%", "abc", true),
            ("%b", "abc", false),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("50[%]", "50%", true),
            ("50[%]", "505", false),
            ("[[]x", "[x", true),
            ("x]", "x]", true),
            ("%a%b%a", "xaybza", true),
            ("", "", true),
            ("%", "", true),
            ("_", "", false),
            ("a.c", "abc", false),
        ];
        for (pattern, text, expect) in cases {
            assert_eq!(Pattern::new(pattern, None).matches(text), expect, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn the_escape_makes_the_next_character_plain() {
        assert!(Pattern::new("50!%", Some('!')).matches("50%"));
        assert!(!Pattern::new("50!%", Some('!')).matches("505"));
        assert_eq!(Pattern::new("ab!_c%", Some('!')).prefix(), "ab_c");
    }
}
