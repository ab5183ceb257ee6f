//! Carrying out the steps of a pattern or pipeline: one after the other. Requests of a step that is
//! done for each of several and only reads are under way together, as an application would send them.

use client::Request;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use crate::Error;
use crate::data::{Binding, Environment};
use crate::expression::is_true;
use crate::target::{Tally, Target, key_of, key_of_item};
use crate::workload::{Action, Model, Step, WriteKind};

/// Reading requests of one step that are under way at a time.
const TOGETHER: usize = 8;

/// Carries out steps. Results that have a name are bound for the steps behind them.
pub async fn run(
    model: &Model,
    target: &Target,
    steps: &[Step],
    names: &mut Environment<'_>,
    tally: &mut Tally,
) -> Result<(), Error> {
    for (at, step) in steps.iter().enumerate() {
        let what = format!("step {} on {}", at + 1, model.containers[step.container].name);
        let one = One { model, target, step, what };
        let result = match &step.each {
            None => one.run(names, tally).await?.unwrap_or(Value::Null),
            Some(each) => {
                let elements = names.elements(each).map_err(|message| one.wrong(message))?;
                let (names, one, wanted) = (&*names, &one, tally.fresh());
                let runs = elements.into_iter().map(|element| {
                    let (mut inner, mut own) = (names.clone(), wanted.fresh());
                    inner.bind(&each.name, element);
                    async move { one.run(&inner, &mut own).await.map(|result| (result, own)) }
                });
                let together = if step.only_reads() { TOGETHER } else { 1 };
                let mut runs = stream::iter(runs).buffered(together);
                let mut results = Vec::new();
                while let Some(run) = runs.next().await {
                    let (result, own) = run?;
                    tally.add(&own);
                    results.extend(result);
                }
                Value::Array(results)
            }
        };
        if let Some(name) = &step.bind {
            names.bind(name, Binding::Value(result));
        }
    }
    Ok(())
}

/// One step under way.
struct One<'a> {
    model: &'a Model,
    target: &'a Target,
    step: &'a Step,
    what: String,
}

impl One<'_> {
    fn wrong(&self, message: String) -> Error {
        Error::Step { what: self.what.clone(), message }
    }

    /// Its result; nothing if its condition does not hold.
    async fn run(
        &self,
        names: &Environment<'_>,
        tally: &mut Tally,
    ) -> Result<Option<Value>, Error> {
        if let Some(when) = &self.step.when
            && !is_true(&when.evaluate(names).map_err(|message| self.wrong(message))?)
        {
            return Ok(None);
        }
        let request = self.request(names).map_err(|message| self.wrong(message))?;
        if let Action::Query { .. } = self.step.action {
            let rows = self.target.rows(&self.what, &request, tally).await?;
            return Ok(Some(Value::Array(rows)));
        }
        let reply = self.target.send(&self.what, &request, tally).await?;
        if !self.step.only_reads() {
            tally.written.insert((self.step.container, reply.partition()));
        }
        match reply.body.is_empty() {
            true => Ok(Some(Value::Null)),
            false => Ok(Some(reply.json().unwrap_or(Value::Null))),
        }
    }

    fn request(&self, names: &Environment<'_>) -> Result<Request, String> {
        let container = &self.model.containers[self.step.container];
        let here = self.target.container(&container.name);
        match &self.step.action {
            Action::Read { id, key } => {
                let (id, key) = (text(&id.fill(names)?)?, key_of(&key.fill(names)?)?);
                Ok(here.read(&key, &id))
            }
            Action::Delete { id, key } => {
                let (id, key) = (text(&id.fill(names)?)?, key_of(&key.fill(names)?)?);
                Ok(here.delete(&key, &id))
            }
            Action::Query { sql, key, parameters, page } => {
                let fill = |(name, value): &(String, _)| {
                    let value: &crate::expression::Template = value;
                    Ok((name.clone(), value.fill(names)?))
                };
                let filled = parameters.iter().map(fill).collect::<Result<Vec<_>, String>>()?;
                let borrowed: Vec<(&str, Value)> =
                    filled.iter().map(|(name, value)| (&name[..], value.clone())).collect();
                let query = here.query(sql, &borrowed, *page);
                match key {
                    None => Ok(query),
                    Some(key) => Ok(query.with_key(&key_of(&key.fill(names)?)?)),
                }
            }
            Action::Write { kind, item, before, after } => {
                let item = item.fill(names)?;
                let key = key_of_item(container, &item)?;
                let request = match kind {
                    WriteKind::Create => here.create(&key, item.to_string()),
                    WriteKind::Upsert => here.upsert(&key, item.to_string()),
                    WriteKind::Replace => here.replace(&key, &text(&item["id"])?, item.to_string()),
                };
                let request =
                    before.iter().fold(request, |request, name| request.with_pre_trigger(name));
                Ok(after.iter().fold(request, |request, name| request.with_post_trigger(name)))
            }
            Action::Execute { procedure, key, arguments } => {
                let key = key_of(&key.fill(names)?)?;
                Ok(here.execute(procedure, &key, arguments.fill(names)?.to_string()))
            }
        }
    }
}

fn text(value: &Value) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("an id is a text, not {value}"))
}
