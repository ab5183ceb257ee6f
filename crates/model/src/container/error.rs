//! What can be wrong with a container definition. Every sentence says what would be right.

use super::path::PathError;
use crate::name::NameError;

/// Why a container cannot be created or replaced with this definition. All are mistakes of the
/// client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A property has the wrong JSON type or a value outside its list.
    #[error("'{property}' must be {expected}")]
    Invalid {
        /// Where, in dots: `indexingPolicy.automatic`.
        property: &'static str,
        /// What would have been accepted.
        expected: &'static str,
    },
    /// A property that has no default is absent.
    #[error("'{property}' is required")]
    Missing {
        /// Where, in dots.
        property: &'static str,
    },
    /// The id breaks one of the rules for names.
    #[error(transparent)]
    Id(#[from] NameError),
    /// A path does not parse, or has wildcards where none are allowed.
    #[error("the path '{path}' in '{property}' is not valid: {source}")]
    Path {
        /// Which list it is in.
        property: &'static str,
        /// As the client wrote it.
        path: String,
        /// What is wrong with it.
        source: PathError,
    },
    /// A list has more entries than the service allows, or fewer than make sense.
    #[error("'{property}' has {count} entries; allowed are {min} to {max}")]
    Count {
        /// Which list.
        property: &'static str,
        /// How many were given.
        count: usize,
        /// Fewest allowed.
        min: usize,
        /// Most allowed.
        max: usize,
    },
    /// A number is outside its interval.
    #[error("'{property}' must be between {min} and {max}")]
    Range {
        /// Which number.
        property: &'static str,
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// The same path or name twice where it must be unique.
    #[error("'{value}' is listed twice in '{property}'")]
    Duplicate {
        /// Which list.
        property: &'static str,
        /// What is repeated.
        value: String,
    },
    /// Number of partition key paths and kind do not go together.
    #[error("partition key kind Hash has 1 path, MultiHash has 2 or 3; {paths} given")]
    PathsOfKind {
        /// How many were given.
        paths: usize,
    },
    /// Hierarchical keys exist only with the newer hash.
    #[error("partition key kind MultiHash requires version 2")]
    MultiHashVersion,
    /// The service sets these on every write, so a key on them could never stay.
    #[error("the partition key path '{path}' is a system property")]
    SystemPath {
        /// As the client wrote it.
        path: String,
    },
    /// The index would lag behind the items; new containers may not ask for that.
    #[error("indexing mode 'lazy' is not supported; use 'consistent' or 'none'")]
    LazyIndexing,
    /// Mode none means no index at all.
    #[error("with indexing mode 'none', '{property}' must be empty")]
    NoneHasPaths {
        /// The list that is not empty.
        property: &'static str,
    },
    /// Mode none and automatic indexing contradict each other.
    #[error("with indexing mode 'none', 'automatic' must be false")]
    NoneIsAutomatic,
    /// Expiry is found through the index.
    #[error("'defaultTtl' requires indexing mode 'consistent'")]
    TtlWithoutIndex,
    /// Neither list says what happens to paths that are not listed.
    #[error("the path '/*' must be in either 'includedPaths' or 'excludedPaths'")]
    NoRootPath,
    /// A path cannot be indexed and not indexed.
    #[error("the path '{path}' is both included and excluded")]
    IncludedAndExcluded {
        /// As the included list writes it.
        path: String,
    },
    /// A tuple of an excluded path means nothing.
    #[error("the tuple path '{path}' can only be included")]
    ExcludedTuple {
        /// As the client wrote it.
        path: String,
    },
    /// A computed property would hide what every item must have.
    #[error("'{name}' cannot be the name of a computed property")]
    ComputedName {
        /// The name.
        name: String,
    },
    /// The query of a computed property was refused by whoever understands queries.
    #[error("the query of computed property '{name}' is not valid: {reason}")]
    ComputedQuery {
        /// The computed property.
        name: String,
        /// Why it was refused.
        reason: String,
    },
    /// A vector index without an embedding, or a full-text index without a full-text path.
    #[error("the path '{path}' in '{property}' is not in '{policy}'")]
    NotInPolicy {
        /// The list of indexes.
        property: &'static str,
        /// The path that has an index.
        path: String,
        /// The policy that should describe it.
        policy: &'static str,
    },
    /// A planar index has to know the extent of the plane.
    #[error("spatial indexes over 'Geometry' need a 'boundingBox' of xmin, ymin, xmax, ymax")]
    NoBoundingBox,
    /// Part of the service that this server does not have.
    #[error("'{property}' is not supported")]
    Unsupported {
        /// The property.
        property: &'static str,
    },
    /// A replacement changes what is fixed when a container is created.
    #[error("'{property}' cannot be changed after the container is created")]
    Immutable {
        /// The property.
        property: &'static str,
    },
}
