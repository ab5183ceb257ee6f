//! Walking all items of a container at one view, for export.

use base::Ctx;
use item::Item;
use storage::scan::PartitionReader;

use crate::{Container, Engine, Result};

impl Engine {
    /// Hands every present item of a container to `each`, as of one moment.
    pub fn export(
        &self,
        ctx: &Ctx,
        container: &Container,
        mut each: impl FnMut(&Item) -> std::io::Result<()>,
    ) -> Result<u64> {
        let view = self.core.store.view();
        let erasures = container.published_erasures(&view);
        let visibility = container.visibility(ctx.now().as_secs() as u32, &erasures);
        let mut count = 0;
        for partition in &container.layout.partitions {
            let layout = &container.layout;
            let reader = PartitionReader { layout, partition, view: &view, visibility };
            let mut from = 0;
            loop {
                let page = reader.items(from, 1 << 60, 1000, 8 << 20)?;
                for item in &page.items {
                    each(item).map_err(|error| crate::Error::Fault(error.to_string()))?;
                    count += 1;
                }
                match page.last {
                    Some(last) if page.is_cut => from = last + 1,
                    Some(_) | None => break,
                }
            }
        }
        Ok(count)
    }
}
