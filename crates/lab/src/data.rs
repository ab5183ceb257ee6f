//! The instances of a workload at one seed and scale.
//!
//! Instances are numbers: the children of one parent are neighbors, so `offsets` of an entity says
//! where those of each parent begin. Their fields are drawn when somebody asks (G1).
//!
//! ```text
//! user      0        1     2            samples come first
//! post      0 1 2    3 4   5 6 7 8      offsets 0 3 5 9
//! ```
//!
//! INVARIANTS
//! (D1) The same workload, seed and scale give the same instances with the same fields.
//! (D2) A sample has exactly the counts it declares, at every scale.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::expression::{Each, Path, Scope, Step, Visit, walk};
use crate::generate::{Draw, Generator, name_hash};
use crate::read::{Related, related};
use crate::workload::{Entity, Workload};

/// The instances of a workload.
#[derive(Debug)]
pub struct Data {
    /// What they are instances of.
    pub workload: Arc<Workload>,
    /// What they are drawn from.
    pub seed: u64,
    /// The share of the full size.
    pub scale: f64,
    /// Where the children of each parent begin, and at last how many there are; of entities without
    /// a parent only the number.
    offsets: Vec<Vec<u64>>,
    samples: Vec<Instance>,
    /// By (entity, reference): for each target the instances that refer to it.
    reverse: Vec<Vec<OnceLock<Vec<Vec<u64>>>>>,
}

/// One instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Its entity.
    pub entity: usize,
    /// Its number among those of its entity.
    pub ordinal: u64,
    /// What it belongs to, if it was made after the data.
    pub parent: Option<Arc<Instance>>,
}

impl Instance {
    fn loaded(entity: usize, ordinal: u64) -> Instance {
        Instance { entity, ordinal, parent: None }
    }
}

impl Data {
    /// Lays the instances out.
    pub fn new(workload: Arc<Workload>, seed: u64, scale: f64) -> Data {
        let mut layout = Layout::default();
        let places = place_samples(&workload, &mut layout);
        let locks = |entity: &Entity| entity.refs.iter().map(|_| OnceLock::new()).collect();
        let reverse = workload.entities.iter().map(locks).collect();
        let (offsets, samples) = (Vec::new(), Vec::new());
        let mut data = Data { workload, seed, scale, offsets, samples, reverse };
        for entity in 0..data.workload.entities.len() {
            let offsets = data.lay_out(entity, scale, &layout);
            data.offsets.push(offsets);
        }
        data.samples =
            places.iter().map(|(entity, path)| data.instance_at(*entity, path)).collect();
        data
    }

    fn lay_out(&self, entity: usize, scale: f64, layout: &Layout) -> Vec<u64> {
        let of = &self.entities()[entity];
        let salt = name_hash(&of.name);
        let Some(parent) = of.parent else {
            let count = of.count.draw(&mut Draw::of(&[self.seed, salt]));
            let scaled = (count as f64 * scale).round() as u64;
            let reserved = layout.reserved.get(&(entity, Vec::new())).copied().unwrap_or(0);
            return vec![scaled.max(reserved).max(1)];
        };
        let mut offsets = vec![0];
        let mut end = 0;
        for ordinal in 0..self.total(parent) {
            let drawn = of.count.draw(&mut Draw::of(&[self.seed, salt, ordinal]));
            end += drawn;
            offsets.push(end);
        }
        // Samples are few and come first: their counts are put right afterwards.
        let mut shift = 0i64;
        let fixed = layout.fixed(self, entity, parent);
        let last = fixed.keys().max().map_or(0, |ordinal| ordinal + 1);
        let mut counts: Vec<u64> =
            offsets.windows(2).take(last as usize).map(|pair| pair[1] - pair[0]).collect();
        for (ordinal, count) in &fixed {
            let at = *ordinal as usize;
            shift += *count as i64 - counts[at] as i64;
            counts[at] = *count;
        }
        let mut begin = 0;
        for (at, count) in counts.iter().enumerate() {
            begin += count;
            offsets[at + 1] = begin;
        }
        for offset in offsets.iter_mut().skip(counts.len() + 1) {
            *offset = offset.wrapping_add_signed(shift);
        }
        offsets
    }

    /// Follows positions from a root down to an instance.
    fn instance_at(&self, entity: usize, path: &[u64]) -> Instance {
        let Some((position, above)) = path.split_last() else { return Instance::loaded(entity, 0) };
        match self.entities()[entity].parent {
            None => Instance::loaded(entity, *position),
            Some(parent) => {
                let parent = self.instance_at(parent, above);
                Instance::loaded(entity, self.offsets[entity][parent.ordinal as usize] + position)
            }
        }
    }

    /// How many instances an entity has.
    pub fn total(&self, entity: usize) -> u64 {
        self.offsets[entity].last().copied().unwrap_or(0)
    }

    fn entities(&self) -> &[Entity] {
        &self.workload.entities
    }

    /// One instance.
    pub fn instance(&self, entity: usize, ordinal: u64) -> Instance {
        Instance::loaded(entity, ordinal)
    }

    /// A named instance.
    pub fn sample(&self, at: usize) -> Instance {
        self.samples[at].clone()
    }

    /// An instance that is not among the data: the `sequence`-th made, belonging to another one.
    pub fn fresh(&self, entity: usize, sequence: u64, parent: Option<Instance>) -> Instance {
        let ordinal = self.total(entity) + sequence;
        Instance { entity, ordinal, parent: parent.map(Arc::new) }
    }

    /// An instance drawn by chance.
    pub fn pick(&self, entity: usize, parts: &[u64]) -> Instance {
        let mut all = vec![self.seed, name_hash("pick"), name_hash(&self.entities()[entity].name)];
        all.extend_from_slice(parts);
        Instance::loaded(entity, Draw::of(&all).below(self.total(entity)))
    }

    fn parent(&self, instance: &Instance) -> Option<Instance> {
        if let Some(parent) = &instance.parent {
            return Some((**parent).clone());
        }
        let parent = self.entities()[instance.entity].parent?;
        let offsets = &self.offsets[instance.entity];
        let after = offsets.partition_point(|offset| *offset <= instance.ordinal);
        // A fresh instance without a parent of its own belongs to any that exists.
        let last = self.total(parent).saturating_sub(1);
        Some(Instance::loaded(parent, (after as u64 - 1).min(last)))
    }

    fn target(&self, instance: &Instance, at: usize) -> Instance {
        let of = &self.entities()[instance.entity];
        let reference = &of.refs[at];
        let salts = [self.seed, name_hash(&of.name), name_hash(&reference.name), instance.ordinal];
        let fraction = Draw::of(&salts).fraction().powf(1.0 / (1.0 - reference.skew));
        let total = self.total(reference.entity);
        let ordinal = ((fraction * total as f64) as u64).min(total.saturating_sub(1));
        Instance::loaded(reference.entity, ordinal)
    }

    /// The instances of another entity that belong to one, or refer to it.
    fn children(&self, instance: &Instance, child: usize, name: &str) -> Vec<Instance> {
        let of = &self.entities()[child];
        let at = instance.ordinal as usize;
        if of.parent == Some(instance.entity) && of.name == name {
            return match self.offsets[child].get(at..at + 2) {
                Some(&[begin, end]) => (begin..end).map(|n| Instance::loaded(child, n)).collect(),
                Some(_) | None => Vec::new(),
            };
        }
        let is_it = |reference: &crate::workload::Reference| {
            reference.entity == instance.entity && format!("{}_{}", of.name, reference.name) == name
        };
        let Some(reference) = of.refs.iter().position(is_it) else { return Vec::new() };
        let reverse = self.reverse[child][reference].get_or_init(|| {
            let mut lists = vec![Vec::new(); self.total(instance.entity) as usize];
            for ordinal in 0..self.total(child) {
                let target = self.target(&Instance::loaded(child, ordinal), reference);
                lists[target.ordinal as usize].push(ordinal);
            }
            lists
        });
        let list = reverse.get(at).map_or(&[][..], |list| list);
        list.iter().map(|ordinal| Instance::loaded(child, *ordinal)).collect()
    }

    /// What steps lead to from an instance.
    pub fn get(&self, instance: &Instance, steps: &[Step]) -> Result<Value, String> {
        let of = &self.entities()[instance.entity];
        let Some((Step::Name(name), rest)) = steps.split_first() else {
            return Err(format!("`{}` is no value; name one of its fields", of.name));
        };
        match related(self.entities(), instance.entity, name) {
            Some(Related::One(_)) => {
                let other = self.one(instance, name);
                self.get(&other.ok_or_else(|| format!("`{}` has no `{name}`", of.name))?, rest)
            }
            Some(Related::Children(child)) => Ok(self.children(instance, child, name).len().into()),
            Some(Related::Field) => Ok(walk(&self.field(instance, name)?, rest).clone()),
            None => Err(format!("`{}` has no field `{name}`", of.name)),
        }
    }

    fn one(&self, instance: &Instance, name: &str) -> Option<Instance> {
        let of = &self.entities()[instance.entity];
        match of.refs.iter().position(|reference| reference.name == name) {
            Some(at) => Some(self.target(instance, at)),
            None => self.parent(instance),
        }
    }

    fn field(&self, instance: &Instance, name: &str) -> Result<Value, String> {
        let of = &self.entities()[instance.entity];
        let found = of.fields.iter().find(|(field, _)| field == name);
        let Some((_, generator)) = found else { return Ok(Value::Null) };
        if let Generator::Computed(template) = generator {
            let mut names = Environment::new(self);
            names.bind(&of.name, Binding::Instance(instance.clone()));
            return template.fill(&names);
        }
        let salts = [self.seed, name_hash(&of.name), name_hash(name), instance.ordinal];
        Ok(generator.draw(&mut Draw::of(&salts), instance.ordinal))
    }
}

/// How samples are spread before anything has a number: positions below their parents.
#[derive(Default)]
struct Layout {
    /// By entity and path of the parent: positions in use.
    reserved: HashMap<(usize, Vec<u64>), u64>,
    /// By child entity and path of the parent: a declared count.
    counts: BTreeMap<(usize, Vec<u64>), u64>,
    /// By entity: an instance for samples that belong to no other.
    spare: HashMap<usize, Vec<u64>>,
}

impl Layout {
    /// A new position of an entity below a parent.
    fn take(&mut self, entity: usize, parent: &[u64]) -> Vec<u64> {
        let next = self.reserved.entry((entity, parent.to_vec())).or_insert(0);
        let mut path = parent.to_vec();
        path.push(*next);
        *next += 1;
        path
    }

    /// The instance that samples without a parent of their own belong to.
    fn spare(&mut self, entities: &[Entity], entity: usize) -> Vec<u64> {
        if let Some(path) = self.spare.get(&entity) {
            return path.clone();
        }
        let parent = entities[entity].parent.map(|parent| self.spare(entities, parent));
        let path = self.take(entity, &parent.unwrap_or_default());
        self.spare.insert(entity, path.clone());
        path
    }

    /// The counts of an entity that are fixed, by the number of the parent.
    fn fixed(&self, data: &Data, entity: usize, parent: usize) -> BTreeMap<u64, u64> {
        let mut fixed = BTreeMap::new();
        for ((child, path), count) in &self.counts {
            if *child == entity {
                fixed.insert(data.instance_at(parent, path).ordinal, *count);
            }
        }
        for ((child, path), reserved) in &self.reserved {
            if *child == entity {
                let ordinal = data.instance_at(parent, path).ordinal;
                let drawn = || {
                    let of = &data.entities()[entity];
                    let salts = [data.seed, name_hash(&of.name), ordinal];
                    of.count.draw(&mut Draw::of(&salts))
                };
                let count = fixed.get(&ordinal).copied().unwrap_or_else(drawn);
                fixed.insert(ordinal, count.max(*reserved));
            }
        }
        fixed
    }
}

/// Gives every sample its place; parents first, as they stand in the file.
fn place_samples(workload: &Workload, layout: &mut Layout) -> Vec<(usize, Vec<u64>)> {
    let mut places: Vec<(usize, Vec<u64>)> = Vec::new();
    for sample in &workload.samples {
        let parent = match (sample.of, workload.entities[sample.entity].parent) {
            (Some(of), _) => places[of].1.clone(),
            (None, Some(parent)) => layout.spare(&workload.entities, parent),
            (None, None) => Vec::new(),
        };
        let path = layout.take(sample.entity, &parent);
        for (child, count) in &sample.counts {
            layout.counts.insert((*child, path.clone()), *count);
        }
        places.push((sample.entity, path));
    }
    places
}

/// What a name stands for while something runs.
#[derive(Clone, Debug)]
pub enum Binding {
    /// An instance of the data.
    Instance(Instance),
    /// JSON, such as rows of an earlier request.
    Value(Value),
}

/// Names and what they stand for.
#[derive(Clone, Debug)]
pub struct Environment<'d> {
    data: &'d Data,
    names: Vec<(String, Binding)>,
}

impl<'d> Environment<'d> {
    /// No names.
    pub fn new(data: &'d Data) -> Environment<'d> {
        Environment { data, names: Vec::new() }
    }

    /// Gives a name a meaning; a later one hides an earlier one.
    pub fn bind(&mut self, name: &str, binding: Binding) {
        self.names.retain(|(known, _)| known != name);
        self.names.push((name.to_owned(), binding));
    }

    fn binding(&self, name: &str) -> Result<&Binding, String> {
        let found = self.names.iter().find(|(known, _)| known == name);
        found.map(|(_, binding)| binding).ok_or_else(|| format!("`{name}` means nothing here"))
    }

    /// The elements at a path, bound one after the other.
    pub fn elements(&self, each: &Each) -> Result<Vec<Binding>, String> {
        let elements = match self.binding(&each.path.root)? {
            Binding::Value(value) => match walk(value, &each.path.steps) {
                Value::Array(rows) => rows.iter().cloned().map(Binding::Value).collect(),
                Value::Null => Vec::new(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                    return Err(format!("`{}` is not an array", each.path.root));
                }
            },
            Binding::Instance(instance) => self
                .instances(instance, &each.path.steps)?
                .into_iter()
                .map(Binding::Instance)
                .collect(),
        };
        let mut elements: Vec<Binding> = elements;
        elements.truncate(each.first);
        Ok(elements)
    }

    fn instances(&self, instance: &Instance, steps: &[Step]) -> Result<Vec<Instance>, String> {
        let none = || "a loop goes over the children of an instance".to_owned();
        let (Some(Step::Name(name)), rest) = (steps.first(), steps.get(1..).unwrap_or(&[])) else {
            return Err(none());
        };
        match related(self.data.entities(), instance.entity, name) {
            Some(Related::Children(child)) => Ok(self.data.children(instance, child, name)),
            Some(Related::One(_)) => {
                let other = self.data.one(instance, name).ok_or_else(none)?;
                self.instances(&other, rest)
            }
            Some(Related::Field) | None => Err(none()),
        }
    }
}

impl Scope for Environment<'_> {
    fn get(&self, path: &Path) -> Result<Value, String> {
        match self.binding(&path.root)? {
            Binding::Value(value) => Ok(walk(value, &path.steps).clone()),
            Binding::Instance(instance) => self.data.get(instance, &path.steps),
        }
    }

    fn each(&self, each: &Each, visit: &mut dyn FnMut(&dyn Scope) -> Visit) -> Visit {
        self.elements(each)?.into_iter().try_for_each(|element| {
            let mut inner = self.clone();
            inner.bind(&each.name, element);
            visit(&inner)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Source;

    const FILE: &str = r#"
name = "w"
[[entities]]
name = "user"
count = 1000
fields.id = { kind = "guid" }
fields.name = { kind = "word", length = 8 }
[[entities]]
name = "post"
per = "user"
count = { min = 1, max = 5 }
refs.editor = { entity = "user", skew = 0.5 }
fields.id = { kind = "guid" }
fields.label = { value = "${post.user.name}-${post.editor.name}" }
[[entities]]
name = "like"
per = "post"
count = { min = 0, max = 3 }
[[samples]]
name = "writer"
entity = "user"
counts = { post = 7 }
[[samples]]
name = "article"
entity = "post"
of = "writer"
counts = { like = 40 }
[[models]]
id = "m"
[[models.containers]]
name = "c"
partition_key = "/id"
[[patterns]]
id = "p"
[[patterns.models.m]]
read = "c"
id = "x"
key = "x"
[[sweeps]]
id = "s"
sample = "article"
child = "like"
points = [0, 9]
"#;

    fn data(seed: u64, scale: f64) -> Data {
        let beside = |_: &str| Err("none".to_owned());
        let source = Source { name: "w".into(), text: FILE.into(), beside: Box::new(beside) };
        Data::new(Arc::new(source.read().unwrap()), seed, scale)
    }

    fn get(data: &Data, instance: &Instance, path: &str) -> Value {
        let steps: Vec<Step> = path.split('.').map(|name| Step::Name(name.to_owned())).collect();
        data.get(instance, &steps).unwrap()
    }

    #[test]
    fn the_same_seed_gives_the_same_data() {
        let texts = |seed| {
            let data = data(seed, 0.02);
            let posts = (0..data.total(1)).map(|n| data.instance(1, n));
            posts.map(|post| get(&data, &post, "label").to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts(1), texts(1)); // D1
        assert_ne!(texts(1), texts(2));
        let data = data(1, 0.02);
        let post = data.instance(1, 9);
        let early = get(&data, &post, "id");
        (0..data.total(1)).for_each(|n| drop(get(&data, &data.instance(1, n), "id")));
        assert_eq!(get(&data, &post, "id"), early); // G1
    }

    #[test]
    fn samples_have_their_counts_at_every_scale() {
        for scale in [0.0001, 0.01, 1.0] {
            let data = data(3, scale);
            let count = |sample: usize, child: &str| get(&data, &data.sample(sample), child);
            assert_eq!(count(0, "post"), 7); // D2
            assert_eq!(
                (count(1, "like"), count(2, "like"), count(3, "like")),
                (40.into(), 0.into(), 9.into())
            );
            let writer = get(&data, &data.sample(0), "id");
            assert_eq!(get(&data, &data.sample(1), "user.id"), writer);
            assert_ne!(get(&data, &data.sample(2), "user.id"), writer);
        }
        assert_eq!(data(3, 1.0).total(0), 1000);
        assert_eq!(data(3, 0.0001).total(0), 2, "samples and their parents are always there");
    }

    #[test]
    fn children_and_parents_agree() {
        let data = data(5, 0.05);
        let mut posts = 0;
        for user in 0..data.total(0) {
            let user = data.instance(0, user);
            for post in data.children(&user, 1, "post") {
                assert_eq!(data.parent(&post), Some(user.clone()));
                posts += 1;
            }
        }
        assert_eq!(posts, data.total(1));
        let edited: usize = (0..data.total(0))
            .map(|n| data.children(&data.instance(0, n), 1, "post_editor").len())
            .sum();
        assert_eq!(edited as u64, data.total(1));
    }

    #[test]
    fn skew_prefers_the_first() {
        let data = data(5, 1.0);
        let low =
            (0..data.total(1)).filter(|n| data.target(&data.instance(1, *n), 0).ordinal < 250);
        let share = low.count() as f64 / data.total(1) as f64;
        assert!((0.45..0.55).contains(&share), "u² is below a quarter half of the time: {share}");
    }

    #[test]
    fn fresh_instances_are_not_among_the_data() {
        let data = data(5, 0.05);
        let user = data.instance(0, 3);
        let fresh = data.fresh(1, 0, Some(user.clone()));
        assert!(fresh.ordinal >= data.total(1));
        assert_eq!(get(&data, &fresh, "user.id"), get(&data, &user, "id"));
        let next = data.fresh(1, 1, None);
        assert_ne!(get(&data, &fresh, "id"), get(&data, &next, "id"));
        assert!(get(&data, &next, "user.id").is_string());
    }
}
