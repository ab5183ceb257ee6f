//! The grammar, case by case: `json_cases.txt` says which texts are JSON and what they become.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use item::{Draft, IngestError, Json, Value};

#[test]
fn every_case_is_accepted_or_refused_as_listed() {
    let cases: Vec<Case> = include_str!("json_cases.txt").lines().filter_map(Case::read).collect();
    assert!(cases.len() >= 120, "{} cases", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(Case::failure).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

struct Case {
    line: &'static str,
    accepts: bool,
    input: Vec<u8>,
    expect: String,
}

impl Case {
    fn read(line: &'static str) -> Option<Case> {
        let accepts = line.starts_with("accept  ");
        let rest = line.strip_prefix("accept  ").or_else(|| line.strip_prefix("refuse  "))?;
        let (input, expect) = rest.rsplit_once("  ->  ").expect("an arrow in every case");
        let expect = String::from_utf8(bytes(expect)).unwrap();
        Some(Case { line, accepts, input: bytes(input), expect })
    }

    fn failure(&self) -> Option<String> {
        let result = Json::parse(&self.input).map(|json| json.root().raw().to_owned());
        let outcome = match &result {
            Ok(text) => text.clone(),
            Err(error) => describe(error),
        };
        if result.is_ok() != self.accepts || outcome != self.expect {
            return Some(format!("{}\n    gave {outcome}", self.line));
        }
        if self.accepts {
            self.check_other_ways();
        }
        None
    }

    /// Canonical text is a fixed point, and values and drafts agree with it.
    fn check_other_ways(&self) {
        let again = Json::parse(self.expect.as_bytes()).unwrap();
        assert_eq!(again.root().raw(), self.expect);
        let value = Value::parse(&self.input).unwrap();
        assert_eq!(value.to_json(), self.expect);
        match Draft::parse(&self.input) {
            Ok(draft) => assert_eq!(draft.root().raw(), self.expect),
            Err(error) => assert_eq!(error, IngestError::NotAnObject),
        }
    }
}

fn describe(error: &IngestError) -> String {
    match error {
        IngestError::Syntax { offset, what } => format!("{offset} {what}"),
        IngestError::Number { offset } => format!("number at {offset}"),
        IngestError::TooDeep { .. } | IngestError::TooLarge { .. } | IngestError::NotAnObject => {
            error.to_string()
        }
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        out.push(u8::from_str_radix(&part[..2], 16).unwrap());
        out.extend_from_slice(&part.as_bytes()[2..]);
    }
    out
}
