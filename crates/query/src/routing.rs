//! Which logical partitions a query can find anything in.

use std::collections::HashMap;

use item::{Kind, Value};

use crate::constraints::{Allowed, Constraint, conjuncts, constraint};
use crate::expr::Expr;
use crate::key::canonical;
use crate::{BoundQuery, Path};

/// Most pins a filter is expanded to; beyond that a shorter prefix of the key pins.
const PINS_MAX: usize = 10_000;

/// What the filter of a query says about partition keys and ids: a matching item fits at least one
/// pin. Without pins nothing matches.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing<'k> {
    /// The paths of the partition key, as property names.
    pub key_paths: &'k [Vec<String>],
    /// The alternatives, no key twice.
    pub pins: Vec<Pin>,
}

/// One alternative.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// Values for the first partition key paths: all of them, a prefix, or none.
    /// [`Value::Undefined`] where the path must be absent.
    pub key: Vec<Value>,
    /// The ids that can match, if the filter names them.
    pub ids: Option<Vec<String>>,
}

impl Routing<'_> {
    /// Whether the filter says nothing about the partition key.
    pub fn is_everything(&self) -> bool {
        self.pins.iter().any(|pin| pin.key.is_empty())
    }
}

/// What the filter of a query says about the partition key, whose paths are given as property
/// names.
///
/// Understood are equality and `IN` with constants, `IS_DEFINED(…) = false` and its negation, all
/// combined by AND, and alternatives of such combinations.
pub fn routing<'k>(query: &BoundQuery, key_paths: &'k [Vec<String>]) -> Routing<'k> {
    let router = Router { slot_paths: &query.slot_paths, key_paths };
    let pins = match &query.block.filter {
        Some(Expr::Or(alternatives)) if query.reads_items => router.alternatives(alternatives),
        Some(_) if query.reads_items => {
            let (conjuncts, said): (Vec<&Expr>, Vec<_>) = query.conditions().unzip();
            router.pins_of(&conjuncts, said.into_iter().flatten())
        }
        _ => vec![Pin { key: Vec::new(), ids: None }],
    };
    Routing { key_paths, pins: merged(pins) }
}

struct Router<'a> {
    slot_paths: &'a [Option<Path>],
    key_paths: &'a [Vec<String>],
}

/// The values allowed for a path, if anything is said about it.
type Values = Option<Vec<Value>>;

impl Router<'_> {
    fn pins(&self, filter: &Expr) -> Vec<Pin> {
        if let Expr::Or(alternatives) = filter {
            return self.alternatives(alternatives);
        }
        let conjuncts = conjuncts(filter);
        let said = conjuncts.iter().filter_map(|conjunct| constraint(conjunct, self.slot_paths));
        self.pins_of(&conjuncts, said.collect::<Vec<_>>().iter())
    }

    /// The pins of conjuncts that say this.
    fn pins_of<'c>(
        &self,
        conjuncts: &[&Expr],
        said: impl Iterator<Item = &'c Constraint>,
    ) -> Vec<Pin> {
        let own = self.conjunction(said);
        if own.iter().all(|pin| !pin.key.is_empty()) {
            return own;
        }
        let nested = conjuncts.iter().filter(|conjunct| matches!(conjunct, Expr::Or(_)));
        let pins = nested.map(|conjunct| self.pins(conjunct));
        pins.into_iter().find(|pins| pins.iter().all(|pin| !pin.key.is_empty())).unwrap_or(own)
    }

    /// An alternative that pins nothing makes the others useless.
    fn alternatives(&self, alternatives: &[Expr]) -> Vec<Pin> {
        let pins: Vec<Pin> = alternatives.iter().flat_map(|a| self.pins(a)).collect();
        if pins.len() <= PINS_MAX && pins.iter().all(|pin| !pin.key.is_empty()) {
            return pins;
        }
        let ids: Option<Vec<_>> = pins.into_iter().map(|pin| pin.ids).collect();
        vec![Pin { key: Vec::new(), ids: ids.map(|ids| ids.concat()) }]
    }

    fn conjunction<'c>(&self, said: impl Iterator<Item = &'c Constraint>) -> Vec<Pin> {
        let mut keys: Vec<Values> = vec![None; self.key_paths.len()];
        let mut ids: Values = None;
        for found in said {
            let Allowed::Values(values) = &found.allowed else { continue };
            for (at, path) in self.key_paths.iter().enumerate() {
                if found.path.is_names(path) {
                    narrow(&mut keys[at], values);
                }
            }
            if found.path.is_names(&["id"]) {
                narrow(&mut ids, values);
            }
        }
        let ids =
            ids.map(|ids| ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect());
        product(keys).into_iter().map(|key| Pin { key, ids: Option::clone(&ids) }).collect()
    }
}

/// Keeps the values that both allow.
fn narrow(values: &mut Values, allowed: &[Value]) {
    // An array or object is never a partition key or an id.
    let is_key = |value: &&Value| !matches!(value.kind(), Some(Kind::Array | Kind::Object));
    let allowed: Vec<Value> = allowed.iter().filter(is_key).cloned().collect();
    *values = Some(match values.take() {
        None => allowed,
        Some(own) => {
            own.into_iter().filter(|v| allowed.iter().any(|other| v.deep_eq(other))).collect()
        }
    });
}

/// All combinations of values for the longest run of paths from the first that have any.
fn product(keys: Vec<Values>) -> Vec<Vec<Value>> {
    let mut combinations = vec![Vec::new()];
    for values in keys.into_iter().map_while(|values| values) {
        if combinations.len().saturating_mul(values.len()) > PINS_MAX {
            break;
        }
        let longer = |key: &Vec<Value>| -> Vec<Vec<Value>> {
            values.iter().map(|value| [&key[..], std::slice::from_ref(value)].concat()).collect()
        };
        combinations = combinations.iter().flat_map(longer).collect();
    }
    combinations
}

/// One pin for each key, in the order of their first appearance.
fn merged(pins: Vec<Pin>) -> Vec<Pin> {
    if matches!(&pins[..], [Pin { ids: None, .. }]) {
        return pins;
    }
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut merged: Vec<Pin> = Vec::new();
    for pin in pins {
        let identity = canonical(&Value::array(pin.key.clone()));
        match places.get(&identity) {
            Some(&at) => {
                let both = merged[at].ids.take().zip(pin.ids);
                merged[at].ids = both.map(|(own, other)| [own, other].concat());
            }
            None => {
                places.insert(identity, merged.len());
                merged.push(pin);
            }
        }
    }
    for ids in merged.iter_mut().filter_map(|pin| pin.ids.as_mut()) {
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameters, bind};

    fn check(filter: &str, paths: &[&str], expect: &str) {
        let query = sql::parse(&format!("SELECT * FROM c WHERE {filter}")).unwrap();
        let parameters =
            Parameters::from_iter([("@a", Value::from("A")), ("@b", Value::from("B"))]);
        let bound = bind(&query, &parameters).unwrap();
        let names = |path: &&str| path.split('/').map(str::to_owned).collect();
        let paths: Vec<Vec<String>> = paths.iter().map(names).collect();
        let show = |pin: &Pin| {
            let value = |v: &Value| if v.is_undefined() { "?".to_owned() } else { v.to_json() };
            let key: Vec<_> = pin.key.iter().map(value).collect();
            let ids = pin.ids.as_ref().map_or(String::new(), |ids| format!(":{}", ids.join(",")));
            format!("[{}]{ids}", key.join(","))
        };
        let pins: Vec<_> = routing(&bound, &paths).pins.iter().map(show).collect();
        assert_eq!(pins.join(" "), expect, "{filter}");
    }

    #[test]
    fn pins() {
        check("c.pk = 'x' AND c.v > 1", &["pk"], r#"["x"]"#);
        check("@a = c.pk", &["pk"], r#"["A"]"#);
        check("c.pk IN (1, 2, 1)", &["pk"], "[1] [2]");
        check("c.pk > 'x'", &["pk"], "[]");
        check("c.pk = 'x' OR c.v = 1", &["pk"], "[]");
        check("c.pk = 'x' OR c.pk = 'y'", &["pk"], r#"["x"] ["y"]"#);
        check("c.pk = 'x' AND c.pk = 'y'", &["pk"], "");
        check("c.pk IN (1, 2) AND c.pk IN (2, 3)", &["pk"], "[2]");
        check("NOT (c.pk = 'x')", &["pk"], "[]");
        check("IS_DEFINED(c.pk) = false", &["pk"], "[?]");
        check("NOT IS_DEFINED(c.pk)", &["pk"], "[?]");
        check("c.pk = null", &["pk"], "[null]");
        check("c.a.b = 1", &["a/b"], "[1]");
        check("c.id = 'x'", &["id"], r#"["x"]:x"#);
        check("c.id IN ('x', 'y')", &["pk"], "[]:x,y");
    }

    #[test]
    fn hierarchical_keys_pin_a_prefix() {
        check("c.t = 1 AND c.u = 2", &["t", "u", "s"], "[1,2]");
        check("c.u = 2", &["t", "u"], "[]");
        check("c.t IN (1, 2) AND c.u IN (3, 4)", &["t", "u"], "[1,3] [1,4] [2,3] [2,4]");
    }

    #[test]
    fn read_many_shapes() {
        check("c.pk = @a AND c.id IN (@a, @b)", &["pk"], r#"["A"]:A,B"#);
        check(
            "( c.id = @a AND c.pk = 1 ) OR ( c.id = @b AND c.pk = 1 ) OR ( c.id = @b AND IS_DEFINED(c.pk) = false )",
            &["pk"],
            "[1]:A,B [?]:B",
        );
        check(
            "((c.id = @a AND c.pk = 1) OR (c.id = @b AND c.pk = 2)) AND c.v",
            &["pk"],
            "[1]:A [2]:B",
        );
    }
}
