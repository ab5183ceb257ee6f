//! Full-text indexes: terms over the words of a text.
//!
//! ```text
//! {path}{token as string}
//! ```
//!
//! An item has one term for each token of its text, however often the token comes up: positions
//! and counts are read from the item. The language decides what the tokens are, so an index whose
//! language changes is another index.

use item::Node;
use model::container::ContainerDefinition;
use text::{Language, tokens};

use crate::encode::{self, STRING_BYTES_MAX, Scalar};
use crate::path::Path;
use crate::policy::Policy;
use crate::range::{Bounds, TermRange, range};
use crate::terms::Terms;

// No token is cut a second time.
const _: () = assert!(text::TOKEN_BYTES_MAX <= STRING_BYTES_MAX);

/// One full-text index of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullText {
    path: Vec<String>,
    language: Language,
}

impl FullText {
    /// The full-text indexes of a container. A computed property hides the text under its name.
    pub(crate) fn of(definition: &ContainerDefinition) -> Vec<FullText> {
        let is_hidden = |path: &[String]| {
            let mut names = definition.computed.iter().map(|property| &property.name);
            names.any(|name| path.first() == Some(name))
        };
        let indexes = definition.indexing.full_text.iter();
        indexes
            .map(|index| index.path.segments())
            .filter(|path| !is_hidden(path))
            .map(|path| FullText { path: path.to_vec(), language: language(definition, path) })
            .collect()
    }

    /// The property names of its path.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// The language its texts are read in.
    pub fn language(&self) -> Language {
        self.language
    }

    fn write_terms(&self, root: Node<'_>, terms: &mut Terms) {
        let Some(text) = root.path(self.path.iter().map(String::as_str)) else { return };
        let Some(text) = text.as_str() else { return };
        let path = Path::of_properties(self.path.iter().map(String::as_str)).to_bytes();
        let mut stems: Vec<_> = tokens(self.language, &text).into_iter().map(|t| t.stem).collect();
        stems.sort_unstable();
        stems.dedup();
        for stem in stems {
            terms.push(true, |out| {
                out.extend_from_slice(&path);
                encode::write(&Scalar::string(&stem), out);
            });
        }
    }
}

/// The language of a path: its own, or that of the policy, or English.
fn language(definition: &ContainerDefinition, path: &[String]) -> Language {
    let policy = &definition.full_text;
    let own = policy.paths.iter().find(|own| own.path.segments() == path);
    let tag = own.and_then(|own| own.language.as_ref()).or(policy.default_language.as_ref());
    tag.and_then(|tag| Language::from_tag(tag)).unwrap_or_default()
}

impl Policy {
    /// The full-text terms of an item: one for each token of each text.
    pub fn text_terms(&self, root: Node<'_>) -> Terms {
        let mut terms = Terms::default();
        if self.is_consistent() {
            self.full_texts().iter().for_each(|index| index.write_terms(root, &mut terms));
        }
        terms.finish()
    }
}

/// The terms of the items whose text at a path has a token.
pub fn full_text_range(path: &Path, token: &str) -> TermRange {
    range(path, &Bounds::Equal(Scalar::string(token)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(extra: Value) -> Policy {
        let mut body = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": {"fullTextIndexes": [{"path": "/a/text"}, {"path": "/de"}]},
            "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [
                {"path": "/a/text"}, {"path": "/de", "language": "de-DE"},
            ]},
        });
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        Policy::of(&ContainerDefinition::parse(&body).unwrap())
    }

    fn terms(policy: &Policy, body: &Value) -> Terms {
        policy.text_terms(item::Json::parse(body.to_string().as_bytes()).unwrap().root())
    }

    fn check(policy: &Policy, body: Value, path: &[&str], tokens: &[&str]) {
        let terms = terms(policy, &body);
        assert_eq!(terms.len(), tokens.len(), "{body}");
        for token in tokens {
            let path = Path::of_properties(path.iter().copied());
            let TermRange { start, end, exact } = full_text_range(&path, token);
            assert!(exact && terms.contains(&start), "{body} {token}");
            let found = terms.iter().filter(|term| (&start[..]..&end[..]).contains(term));
            assert_eq!(found.count(), 1, "{body} {token}");
        }
    }

    #[test]
    fn one_term_for_each_token() {
        let policy = policy(json!({}));
        let path = ["a", "text"];
        let body = |text: Value| json!({"a": {"text": text}});
        check(
            &policy,
            body(json!("The red bicycles, the red barn")),
            &path,
            &["red", "bicycl", "barn"],
        );
        check(&policy, json!({"de": "Alte H\u{e4}user"}), &["de"], &["alt", "haus"]);
        check(&policy, body(json!("")), &path, &[]);
        check(&policy, body(json!(42)), &path, &[]);
        check(&policy, body(json!(["red"])), &path, &[]);
        check(&policy, json!({"text": "red"}), &path, &[]);
    }

    #[test]
    fn a_token_is_no_prefix_of_another() {
        let policy = policy(json!({}));
        let terms = terms(&policy, &json!({"de": "rot rotes"}));
        let range = full_text_range(&Path::of_properties(["de"]), "ro");
        let is_in = |term: &[u8]| range.start.as_slice() <= term && term < range.end.as_slice();
        assert!(!terms.iter().any(is_in));
    }

    #[test]
    fn without_an_index_there_are_no_terms() {
        let none = json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}});
        check(&policy(none), json!({"de": "rot"}), &["de"], &[]);
        let hidden =
            json!({"computedProperties": [{"name": "de", "query": "SELECT VALUE 1 FROM c"}]});
        check(&policy(hidden), json!({"de": "rot"}), &["de"], &[]);
    }

    #[test]
    fn another_language_is_another_index() {
        let french = json!({"fullTextPolicy": {"defaultLanguage": "fr-FR", "fullTextPaths": [
            {"path": "/a/text"}, {"path": "/de", "language": "de-DE"},
        ]}});
        let (own, other) = (policy(json!({})), policy(french));
        assert_ne!(own.full_texts()[0], other.full_texts()[0]);
        assert_eq!(own.full_texts()[1], other.full_texts()[1]);
    }
}
