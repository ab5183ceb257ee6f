//! Errors in query text, as the service reports them.

use std::fmt::Write;

use crate::Span;
use crate::print::quote;

/// Why a query text was refused, and where.
///
/// Also used by the planner for errors that belong to a place in the text: unresolved names,
/// unknown functions, clauses that are not allowed where they stand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {message}", code.as_str())]
pub struct Error {
    /// The service's code.
    pub code: Code,
    /// The sentence for people.
    pub message: String,
    /// Where in the text; absent for errors that concern the query as a whole.
    pub span: Option<Span>,
}

/// The codes of the service that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Incorrect syntax near a token.
    Syntax,
    /// The text ends too early.
    EndOfText,
    /// An identifier that names nothing in scope.
    Unresolved,
    /// A call of a function that does not exist.
    UnknownFunction,
    /// `SELECT *` together with GROUP BY.
    StarWithGroupBy,
    /// A function with too few or too many arguments.
    ArgumentCount,
    /// A TOP count that is not an integer in range.
    TopCount,
    /// A LIMIT count out of range.
    LimitCount,
    /// An OFFSET count out of range.
    OffsetCount,
    /// An aggregate of an expression with an aggregate or a subquery.
    NestedAggregate,
    /// A property neither grouped nor aggregated.
    NotGrouped,
    /// ORDER BY in a subquery.
    OrderByInSubquery,
    /// TOP in a subquery.
    TopInSubquery,
    /// OFFSET LIMIT in a subquery.
    OffsetInSubquery,
    /// ORDER BY something that is not a path of the item.
    OrderByNotPath,
    /// An index that depends on the row.
    MemberIndexer,
    /// An option of VectorDistance that is unknown or out of its range.
    VectorOption,
    /// ORDER BY RANK of something that is not a scoring function.
    RankFunction,
    /// ORDER BY RANK with `FROM … IN`.
    RankWithIterator,
    /// ORDER BY RANK with JOIN.
    RankWithJoin,
    /// ORDER BY RANK with a subquery in FROM.
    RankWithSubquery,
    /// ORDER BY RANK inside a subquery.
    RankInSubquery,
    /// Weights of RRF that are no array of numbers, one for each component.
    FusionWeights,
    /// FullTextScore outside ORDER BY RANK.
    ScoreOutsideRank,
    /// The text is longer than allowed.
    TooLong,
    /// More operators, joins, list entries or nesting than allowed. The service's own code is not
    /// recorded; it shares the one for long texts.
    TooComplex,
    /// Any other refusal for which no code of the service is recorded.
    Other,
}

impl Code {
    /// The code as it stands in the error document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::Syntax | Code::Other => "SC1001",
            Code::EndOfText => "SC1002",
            Code::Unresolved => "SC2001",
            Code::UnknownFunction => "SC2005",
            Code::StarWithGroupBy => "SC2041",
            Code::ArgumentCount => "SC2050",
            Code::TopCount => "SC2060",
            Code::LimitCount => "SC2061",
            Code::OffsetCount => "SC2062",
            Code::NestedAggregate => "SC2101",
            Code::NotGrouped => "SC2102",
            Code::OrderByInSubquery => "SC2202",
            Code::TopInSubquery => "SC2203",
            Code::OffsetInSubquery => "SC2204",
            // The service writes this one without its prefix.
            Code::OrderByNotPath => "2206",
            Code::VectorOption => "SC2213",
            Code::RankFunction => "SC2221",
            Code::RankWithIterator => "SC2223",
            Code::RankWithJoin => "SC2224",
            Code::RankWithSubquery => "SC2225",
            Code::RankInSubquery => "SC2228",
            Code::FusionWeights => "SC2229",
            Code::ScoreOutsideRank => "SC2240",
            Code::MemberIndexer => "SC2990",
            Code::TooLong | Code::TooComplex => "SC3007",
        }
    }
}

impl Error {
    /// An error at a place.
    pub fn at(code: Code, span: Span, message: impl Into<String>) -> Error {
        Error { code, message: message.into(), span: Some(span) }
    }

    /// "Incorrect syntax near" a token.
    pub fn syntax(span: Span, near: &str) -> Error {
        Error::at(Code::Syntax, span, format!("Syntax error, incorrect syntax near '{near}'."))
    }

    /// The error document of the service, which the gateway puts into the message of a 400.
    ///
    /// ```
    /// let error = sql::parse("SELECT").unwrap_err();
    /// assert_eq!(
    ///     error.to_document(),
    ///     r#"{"errors":[{"severity":"Error","location":{"start":6,"end":6},"code":"SC1002","message":"Syntax error, unexpected end-of-file."}]}"#
    /// );
    /// ```
    pub fn to_document(&self) -> String {
        let mut text = String::from(r#"{"errors":[{"severity":"Error""#);
        if let Some(Span { start, end }) = self.span {
            // Writing to a string cannot fail.
            let _ = write!(text, r#","location":{{"start":{start},"end":{end}}}"#);
        }
        let _ = write!(text, r#","code":"{}","message":"#, self.code.as_str());
        quote(&mut text, &self.message);
        text.push_str("}]}");
        text
    }
}
