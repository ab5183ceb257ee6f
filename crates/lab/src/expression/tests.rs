//! Expressions and templates: what they mean, and what is wrong with them.

use serde_json::json;

use super::*;

struct Names(Value);

impl Scope for Names {
    fn get(&self, path: &Path) -> Result<Value, String> {
        let root = self.0.get(&path.root).ok_or_else(|| format!("no `{}`", path.root))?;
        Ok(walk(root, &path.steps).clone())
    }

    fn each(&self, each: &Each, visit: &mut dyn FnMut(&dyn Scope) -> Visit) -> Visit {
        let rows = self.get(&each.path)?;
        rows.as_array().into_iter().flatten().take(each.first).try_for_each(|row| {
            let mut names = self.0.clone();
            names[&each.name] = row.clone();
            visit(&Names(names))
        })
    }
}

fn scope() -> Names {
    Names(json!({"a": 2, "t": "text", "rows": [{"id": "x"}], "none": [], "o": {"b": {"c": 1}}}))
}

#[test]
fn values() {
    let check = |text: &str, expect: Value| {
        let value = Expression::parse(text).unwrap().evaluate(&scope());
        assert_eq!(value.unwrap(), expect, "{text}");
    };
    check("1 + 2 * 3", json!(7));
    check("(1 + 2) * 3 - -1", json!(10));
    check("7 / 2", json!(3.5));
    check("floor(7 / 2) == 3", json!(true));
    check("a >= 2 && t < 'z' && !(a != 2)", json!(true));
    check("!none || missing.name", json!(true));
    check("rows[0].id + '-' + a", json!("x-2"));
    check("rows[1].id", Value::Null);
    check("count(rows) + count(none)", json!(1));
    check("truncate(t, 2)", json!("te"));
    check("max(a, 1_000) - min(a, 1)", json!(999));
    check("o.b.c", json!(1));
    check("if(a == 2, 'two', t)", json!("two"));
    check("null == rows[7]", json!(true));
}

#[test]
fn mistakes_are_named() {
    let check = |text: &str, expect: &str| {
        let error = Expression::parse(text).unwrap_err();
        assert!(error.contains(expect), "{text}: {error}");
    };
    check("", "lacks a value");
    check("1 +", "lacks a value");
    check("(1", "lacks a `)`");
    check("1 2", "from `2` on");
    check("size(a)", "no function `size`");
    check("min(1)", "takes 2 values");
    check("'open", "closing '");
    check("a.", "dot without a name");
    check("a[x]", "index that is not a number");
    let fails = |text: &str| Expression::parse(text).unwrap().evaluate(&scope()).unwrap_err();
    assert!(fails("t * 2").contains("not a number"));
    assert!(fails("1 / 0").contains("division by zero"));
    assert!(fails("truncate(1, 1)").contains("truncate cannot be called"));
    assert!(fails("nobody.id").contains("nobody"));
}

#[test]
fn templates_keep_types() {
    let template = json!({"n": "${a}", "s": "a is ${a}, ${t}", "l": ["${rows}", true], "e": ""});
    let filled = Template::parse(&template).unwrap().fill(&scope()).unwrap();
    let expect = json!({"n": 2, "s": "a is 2, text", "l": [[{"id": "x"}], true], "e": ""});
    assert_eq!(filled, expect); // X2
    assert!(Template::parse(&json!({"x": {"y": "${1 +}"}})).unwrap_err().starts_with("x: y: "));
    assert!(Template::parse(&json!("${a")).unwrap_err().contains("closing }"));
    let each = json!({"each": "r in rows", "first": 1, "item": {"id": "${r.id}", "a": "${a}"}});
    let template = Template::parse(&each).unwrap();
    assert_eq!(template.fill(&scope()).unwrap(), json!([{"id": "x", "a": 2}]));
    let mut roots = Vec::new();
    let visited = template.visit(&mut Vec::new(), &mut |around, hole| {
        let names: Vec<&str> = hole.paths().iter().map(|path| path.root.as_str()).collect();
        roots.push(format!("{} in {}", names.concat(), around[0].name));
        Ok(())
    });
    assert!(visited.is_ok());
    assert_eq!(roots, ["r in r", "a in r"]);
    let among = json!(["first", each, "last"]);
    let filled = Template::parse(&among).unwrap().fill(&scope()).unwrap();
    assert_eq!(filled, json!(["first", {"id": "x", "a": 2}, "last"]));
    let none = json!({"each": "r in rows", "first": 0, "item": 1});
    assert_eq!(Template::parse(&none).unwrap().fill(&scope()).unwrap(), json!([]));
    let wrong = |template: Value| Template::parse(&template).unwrap_err();
    assert!(wrong(json!({"each": "r of rows", "item": 1})).contains("name in path"));
    assert!(wrong(json!({"each": "r in rows"})).contains("needs an `item`"));
    assert!(wrong(json!({"each": "r in rows", "item": 1, "x": 1})).contains("`x`"));
}
