//! The contract suite every store passes; in preparation.
