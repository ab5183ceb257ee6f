//! Goal: what is printed parses back to the same tree (S1).
//! Method: random trees of every form, printed and parsed.

use proptest::prelude::*;
use sql::{
    BinaryOp, Collection, Count, CountKind, From, Ident, Literal, OffsetLimit, OrderBy, OrderItem,
    Property, Query, Scalar, ScalarKind, Select, SelectItem, Selection, SortDirection, Source,
    SourceKind, Span, Step, SubqueryKind, UnaryOp,
};

fn scalar_of(kind: ScalarKind) -> Scalar {
    Scalar::new(kind, Span::default())
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z_][a-zA-Z0-9_]{0,6}".prop_filter("a plain name", |name| sql::is_plain_name(name))
}

/// Names that may stand in brackets.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![name(), "\\PC{0,6}", Just("order".to_owned()), Just("\n\"\\".to_owned())]
}

fn ident() -> impl Strategy<Value = Ident> {
    name().prop_map(|name| Ident::new(name, Span::default()))
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        Just(Literal::Undefined),
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Bool),
        (0u32..1000).prop_map(|n| Literal::Number(n.into())),
        proptest::num::f64::POSITIVE
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(Literal::Number),
        "\\PC{0,8}".prop_map(Literal::String),
    ]
}

fn unary_op() -> impl Strategy<Value = UnaryOp> {
    prop_oneof![
        Just(UnaryOp::Minus),
        Just(UnaryOp::Plus),
        Just(UnaryOp::BitNot),
        Just(UnaryOp::Not)
    ]
}

fn binary_op() -> impl Strategy<Value = BinaryOp> {
    proptest::sample::select(vec![
        BinaryOp::Coalesce,
        BinaryOp::Concat,
        BinaryOp::BitOr,
        BinaryOp::BitXor,
        BinaryOp::BitAnd,
        BinaryOp::Equal,
        BinaryOp::NotEqual,
        BinaryOp::Less,
        BinaryOp::LessOrEqual,
        BinaryOp::Greater,
        BinaryOp::GreaterOrEqual,
        BinaryOp::ShiftLeft,
        BinaryOp::ShiftRight,
        BinaryOp::ShiftRightUnsigned,
        BinaryOp::Add,
        BinaryOp::Subtract,
        BinaryOp::Multiply,
        BinaryOp::Divide,
        BinaryOp::Modulo,
    ])
}

fn subquery_kind() -> impl Strategy<Value = SubqueryKind> {
    proptest::sample::select(vec![
        SubqueryKind::Scalar,
        SubqueryKind::Exists,
        SubqueryKind::Array,
        SubqueryKind::All,
        SubqueryKind::First,
        SubqueryKind::Last,
    ])
}

fn scalar() -> impl Strategy<Value = Scalar> {
    let leaf = prop_oneof![
        literal().prop_map(ScalarKind::Literal),
        name().prop_map(|name| ScalarKind::Parameter(format!("@{name}"))),
        name().prop_map(ScalarKind::Identifier),
    ];
    leaf.prop_map(scalar_of).boxed().prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let some = proptest::collection::vec(inner.clone(), 0..4);
        let several = proptest::collection::vec(inner.clone(), 2..4);
        let index = inner.clone().prop_filter("a string index is a property", |index| {
            !matches!(index.kind, ScalarKind::Literal(Literal::String(_)))
        });
        prop_oneof![
            (boxed.clone(), any_name())
                .prop_map(|(object, name)| ScalarKind::Property { object, name }),
            (boxed.clone(), index.prop_map(Box::new))
                .prop_map(|(object, index)| ScalarKind::Index { object, index }),
            some.clone().prop_map(ScalarKind::Array),
            proptest::collection::vec((any_name(), inner.clone()), 0..3).prop_map(|properties| {
                let property = |(name, value)| Property { name, value };
                ScalarKind::Object(properties.into_iter().map(property).collect())
            }),
            (unary_op(), boxed.clone()).prop_map(|(op, operand)| ScalarKind::Unary { op, operand }),
            (binary_op(), boxed.clone(), boxed.clone())
                .prop_map(|(op, left, right)| ScalarKind::Binary { op, left, right }),
            several.clone().prop_map(ScalarKind::And),
            several.clone().prop_map(ScalarKind::Or),
            (any::<bool>(), boxed.clone(), several)
                .prop_map(|(negated, needle, items)| ScalarKind::In { negated, needle, items }),
            (any::<bool>(), boxed.clone(), boxed.clone(), boxed.clone()).prop_map(
                |(negated, value, low, high)| ScalarKind::Between { negated, value, low, high }
            ),
            (any::<bool>(), boxed.clone(), boxed.clone(), any::<Option<char>>()).prop_map(
                |(negated, value, pattern, escape)| ScalarKind::Like {
                    negated,
                    value,
                    pattern,
                    escape
                }
            ),
            (boxed.clone(), boxed.clone(), boxed).prop_map(|(condition, yes, no)| {
                ScalarKind::Conditional { condition, yes, no }
            }),
            (any::<bool>(), name(), some).prop_map(|(udf, name, arguments)| ScalarKind::Call {
                udf,
                name,
                arguments
            }),
            (subquery_kind(), query_of(inner.boxed()))
                .prop_map(|(kind, query)| ScalarKind::Subquery { kind, query: Box::new(query) }),
        ]
        .prop_map(scalar_of)
    })
}

fn count() -> impl Strategy<Value = Count> {
    prop_oneof![
        any::<u32>().prop_map(CountKind::Literal),
        name().prop_map(|name| CountKind::Parameter(format!("@{name}"))),
    ]
    .prop_map(|kind| Count { kind, span: Span::default() })
}

fn source() -> impl Strategy<Value = Source> {
    let step = prop_oneof![any_name().prop_map(Step::Property), any::<u32>().prop_map(Step::Index)];
    let path = (ident(), proptest::collection::vec(step, 0..3))
        .prop_map(|(root, steps)| Collection::Path { root, steps })
        .boxed();
    let call = name().prop_map(|name| {
        let arguments = vec![scalar_of(ScalarKind::Literal(Literal::Null))];
        Collection::Call(Box::new(scalar_of(ScalarKind::Call { udf: false, name, arguments })))
    });
    let iterate = (ident(), prop_oneof![path.clone(), call])
        .prop_map(|(alias, collection)| SourceKind::Iterate { alias, collection });
    let values = (path, proptest::option::of(ident()))
        .prop_map(|(collection, alias)| SourceKind::Values { collection, alias });
    prop_oneof![iterate, values].prop_map(|kind| Source { kind, span: Span::default() })
}

fn selection(scalar: BoxedStrategy<Scalar>) -> impl Strategy<Value = Selection> {
    let alias = || proptest::option::of(ident());
    prop_oneof![
        Just(Selection::Star),
        (scalar.clone(), alias())
            .prop_map(|(expression, alias)| Selection::Value { expression, alias }),
        proptest::collection::vec((scalar, alias()), 1..3).prop_map(|items| {
            let item = |(expression, alias)| SelectItem { expression, alias };
            Selection::List(items.into_iter().map(item).collect())
        }),
    ]
}

fn order_by(scalar: BoxedStrategy<Scalar>) -> impl Strategy<Value = OrderBy> {
    let direction = prop_oneof![
        Just(None),
        Just(Some(SortDirection::Ascending)),
        Just(Some(SortDirection::Descending))
    ];
    let call = (name(), proptest::collection::vec(scalar.clone(), 0..2))
        .prop_map(|(name, arguments)| scalar_of(ScalarKind::Call { udf: false, name, arguments }));
    let item = |(expression, direction)| OrderItem { expression, direction };
    prop_oneof![
        proptest::collection::vec((scalar, direction.clone()).prop_map(item), 1..3)
            .prop_map(OrderBy::Values),
        proptest::collection::vec((call, direction).prop_map(item), 1..3).prop_map(OrderBy::Rank),
    ]
}

fn query_of(scalar: BoxedStrategy<Scalar>) -> impl Strategy<Value = Query> {
    let from = proptest::option::of(
        (source(), proptest::collection::vec(source(), 0..2))
            .prop_map(|(first, joins)| From { first, joins }),
    );
    let select = (any::<bool>(), proptest::option::of(count()), selection(scalar.clone()))
        .prop_map(|(distinct, top, selection)| Select { distinct, top, selection });
    let offset_limit = proptest::option::of(
        (count(), count()).prop_map(|(offset, limit)| OffsetLimit { offset, limit }),
    );
    (
        select,
        from,
        proptest::option::of(scalar.clone()),
        proptest::collection::vec(scalar.clone(), 0..3),
        proptest::option::of(order_by(scalar)),
        offset_limit,
    )
        .prop_map(|(select, from, filter, group_by, order_by, offset_limit)| Query {
            select,
            from,
            filter,
            group_by,
            order_by,
            offset_limit,
            span: Span::default(),
        })
}

proptest! {
    #[test]
    fn printed_queries_parse_back(query in query_of(scalar().boxed())) {
        let text = query.to_string();
        let parsed = sql::parse(&text).map_err(|error| {
            TestCaseError::fail(format!("{text}\n{error}"))
        })?;
        prop_assert_eq!(parsed, query, "{}", text);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let _ = sql::parse(&text);
    }

    #[test]
    fn no_token_soup_panics(
        tokens in proptest::collection::vec(proptest::sample::select(vec![
            "SELECT", "*", "FROM", "c", "WHERE", "(", ")", "[", "]", "{", "}", ",", ".", "1", "'a'",
            "@p", "AND", "NOT", "IN", "LIKE", "?", ":", "??", "ORDER", "BY", "RANK", "udf", "-",
            "VALUE", "TOP", "GROUP", "EXISTS", "=", "BETWEEN", "JOIN", "AS",
        ]), 0..30),
    ) {
        let _ = sql::parse(&tokens.join(" "));
    }
}
