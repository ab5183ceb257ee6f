//! Names that users choose, checked once on the way in.

use std::fmt;

use crate::limits;

/// Why a name is not acceptable. The sentence says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is none.
    #[error("The input name is missing or empty. Provide a non-empty string as 'id'.")]
    Empty,
    /// It is over the limit.
    #[error("The input name is too long: {length} against the limit of {length_max}.")]
    TooLong {
        /// Its length in the unit of the limit.
        length: usize,
        /// The limit.
        length_max: usize,
    },
    /// It contains a character that cannot stand in a link.
    #[error(
        "The input name '{name}' is invalid. Ensure to provide a unique non-empty string without \
         the character '{character}'."
    )]
    Character {
        /// The name.
        name: String,
        /// The first offending character.
        character: char,
    },
    /// It ends in a blank.
    #[error("The input name '{name}' is invalid: it ends with a space.")]
    TrailingSpace {
        /// The name.
        name: String,
    },
}

fn check(
    name: &str,
    length: usize,
    length_max: usize,
    refused: impl Fn(char) -> bool,
) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if length > length_max {
        return Err(NameError::TooLong { length, length_max });
    }
    if let Some(character) = name.chars().find(|&c| refused(c)) {
        return Err(NameError::Character { name: name.to_owned(), character });
    }
    if name.ends_with(' ') {
        return Err(NameError::TrailingSpace { name: name.to_owned() });
    }
    Ok(())
}

/// The name of a database, container, user or permission.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceName(String);

impl ResourceName {
    /// Checks a name: at most 255 characters, none of `/ \ # ?`, no control character that breaks a
    /// header, no trailing blank.
    pub fn new(name: &str) -> Result<ResourceName, NameError> {
        let refused = |c| matches!(c, '/' | '\\' | '#' | '?' | '\t' | '\r' | '\n');
        check(name, name.chars().count(), limits::NAME_CHARS_MAX, refused)?;
        Ok(ResourceName(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of an item: unique within its logical partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(Box<str>);

impl ItemId {
    /// Checks an id: at most 1,023 bytes, neither `/` nor `\`, no trailing blank. Clients refuse
    /// `?` and `#` themselves; we tolerate them.
    pub fn new(id: &str) -> Result<ItemId, NameError> {
        check(id, id.len(), limits::ITEM_ID_BYTES_MAX, |c| matches!(c, '/' | '\\'))?;
        Ok(ItemId(id.into()))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_names_at_their_limits() {
        assert!(ResourceName::new(&"n".repeat(254)).is_ok());
        assert!(ResourceName::new(&"ñ".repeat(255)).is_ok());
        let long = NameError::TooLong { length: 256, length_max: 255 };
        assert_eq!(ResourceName::new(&"n".repeat(256)), Err(long));
        assert_eq!(ResourceName::new(""), Err(NameError::Empty));
        for bad in ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a "] {
            assert!(ResourceName::new(bad).is_err(), "{bad:?}");
        }
        assert!(ResourceName::new("colls").is_ok());
    }

    #[test]
    fn item_ids_at_their_limits() {
        assert!(ItemId::new(&"i".repeat(1022)).is_ok());
        assert!(ItemId::new(&"i".repeat(1023)).is_ok());
        assert!(ItemId::new(&"i".repeat(1024)).is_err());
        assert!(ItemId::new("x y?%é#").is_ok());
        for bad in ["", "a/b", "a\\b", "a "] {
            assert!(ItemId::new(bad).is_err(), "{bad:?}");
        }
    }
}
