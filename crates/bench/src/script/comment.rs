//! A procedure that reads and replaces a post and creates a comment, against a batch that replaces
//! and creates. Both end with one durable commit.

use anyhow::Result;
use serde_json::json;

use crate::process::create_database;
use crate::report::{Bar, Report, Row};
use crate::script::calls::Calls;
use crate::script::posts::Comments;
use crate::setup::Setup;
use crate::slices::{Side, alternate};

/// Of the batch's time.
const BAR: f64 = 1.5;

/// Runs the section.
pub async fn run(setup: &Setup, report: &mut Report) -> Result<()> {
    let server = setup.cosmolabe.serve("comment").await?;
    let client = server.client()?;
    create_database(&client).await?;
    let (called, batched) =
        (Comments::create(&server, "called").await?, Comments::create(&server, "batched").await?);
    let (one, other) = (called.clone(), batched.clone());
    let procedure = Calls::of("procedure", &server, 1, move |_| one.by_procedure());
    let batch = Calls::of("batch", &server, 1, move |_| other.by_batch());
    for side in [&procedure, &batch] {
        side.slice(setup.warmup()).await?;
    }
    let (ours, theirs) = alternate(setup.turns(), &procedure, &batch).await?;
    called.check(&client).await?;
    batched.check(&client).await?;
    let ratio = ours.p50_us / theirs.p50_us.max(1.0);
    report.row(Row::rates("createComment, 1 connection", &ours, &theirs, "a batch", ratio));
    report.row(Row::cpu("  server CPU per comment", &ours, &theirs, "a batch"));
    report.bar(Bar::below("createComment / batch, p50", ratio, BAR));
    report.value(
        "comment",
        json!({"p50_ratio": ratio, "procedure": ours.to_json(), "batch": theirs.to_json()}),
    );
    server.stop()?;
    Ok(())
}
