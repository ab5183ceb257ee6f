//! Policies and throughput of containers, as the service has them.
//!
//! The service ignores keys it does not know, so that one that is misspelt means nothing at all;
//! here it is a mistake. What values mean is known to `model`.

use model::container::ContainerDefinition;
use model::limits::{THROUGHPUT_MAX, THROUGHPUT_MIN, THROUGHPUT_STEP};
use serde_json::Value;
use toml::Spanned;

use super::{Checked, Reader};
use crate::file;
use crate::target::definition;
use crate::workload::Container;

/// What an indexing policy has, and what the entries of its lists have.
const INDEXING: &[(&str, &[&str])] = &[
    ("indexingMode", &[]),
    ("automatic", &[]),
    ("includedPaths", &["path", "indexes"]),
    ("excludedPaths", &["path"]),
    ("compositeIndexes", &["path", "order"]),
    ("spatialIndexes", &["path", "types", "boundingBox"]),
    ("vectorIndexes", &["path", "type", "quantizationByteSize", "indexingSearchListSize"]),
    ("fullTextIndexes", &["path"]),
];

/// The same of a unique key policy.
const UNIQUE_KEYS: &[(&str, &[&str])] = &[("uniqueKeys", &["paths"])];

impl Reader<'_> {
    /// Gives a container its policies and throughput, each checked where it is written.
    pub(super) fn policies(
        &self,
        file: &file::Container,
        mut container: Container,
    ) -> Checked<Container> {
        let is_possible = |container: &Container| {
            ContainerDefinition::parse(&definition(container)).map_err(|error| error.to_string())
        };
        self.at(file.partition_key.span(), is_possible(&container))?;
        if let Some(policy) = &file.indexing {
            self.at(policy.span(), known_keys(policy.get_ref(), INDEXING))?;
            container.indexing = Some(policy.get_ref().clone());
            self.at(policy.span(), is_possible(&container))?;
        }
        if let Some(policy) = &file.unique_keys {
            self.at(policy.span(), known_keys(policy.get_ref(), UNIQUE_KEYS))?;
            container.unique_keys = Some(policy.get_ref().clone());
            self.at(policy.span(), is_possible(&container))?;
        }
        container.throughput = self.throughput(&file.throughput)?;
        Ok(container)
    }

    fn throughput(&self, throughput: &Option<Spanned<u32>>) -> Checked<Option<u32>> {
        let Some(ru) = throughput else { return Ok(None) };
        let is_possible = (THROUGHPUT_MIN..=THROUGHPUT_MAX).contains(ru.get_ref())
            && ru.get_ref().is_multiple_of(THROUGHPUT_STEP);
        match is_possible {
            true => Ok(Some(*ru.get_ref())),
            false => self.fail(
                ru.span(),
                format!(
                    "throughput is from {THROUGHPUT_MIN} to {THROUGHPUT_MAX} RU/s in steps of \
                     {THROUGHPUT_STEP}"
                ),
            ),
        }
    }
}

/// Refuses keys that are not in the table: those of the policy, and those of entries in its lists.
fn known_keys(policy: &Value, table: &[(&str, &[&str])]) -> Result<(), String> {
    let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    refuse_others(policy, &names)?;
    for (name, inner) in table.iter().filter(|(_, inner)| !inner.is_empty()) {
        entries(&policy[*name]).try_for_each(|entry| refuse_others(entry, inner))?;
    }
    Ok(())
}

/// Entries of a list, or of lists in a list.
fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    let rows = list.as_array().into_iter().flatten();
    rows.flat_map(|row| row.as_array().map_or(std::slice::from_ref(row), |inner| inner))
}

fn refuse_others(value: &Value, names: &[&str]) -> Result<(), String> {
    let keys = value.as_object().into_iter().flat_map(|object| object.keys());
    match keys.into_iter().find(|key| !names.contains(&&key[..])) {
        Some(key) => Err(format!("there is no `{key}`; there are {}", names.join(", "))),
        None => Ok(()),
    }
}
