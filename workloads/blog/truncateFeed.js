// Keeps the feed at its newest hundred. Queries see the feed as it was before the write that this
// trigger belongs to, so the written item is added to what they count, unless it was there before.
function truncateFeed() {
  const length = 100;
  const collection = getContext().getCollection();
  const written = getContext().getResponse().getBody();

  count("SELECT VALUE COUNT(1) FROM f", (before) => {
    count({
      query: "SELECT VALUE COUNT(1) FROM f WHERE f.id = @id",
      parameters: [{ name: "@id", value: written.id }],
    }, (same) => {
      const excess = before + 1 - same - length;
      if (excess > 0) removeOldest(excess);
    });
  });

  function count(query, use) {
    check(collection.queryDocuments(collection.getSelfLink(), query, (error, rows) => {
      if (error) throw error;
      use(rows[0]);
    }));
  }

  function removeOldest(excess) {
    const query = "SELECT TOP " + excess + " * FROM f ORDER BY f.creationDate";
    check(collection.queryDocuments(collection.getSelfLink(), query, (error, items) => {
      if (error) throw error;
      removeNext(items);
    }));
  }

  function removeNext(items) {
    if (items.length === 0) return;
    check(collection.deleteDocument(items[0]._self, (error) => {
      if (error) throw error;
      removeNext(items.slice(1));
    }));
  }

  function check(isAccepted) {
    if (!isAccepted) throw new Error("the feed was not truncated; try again");
  }
}
