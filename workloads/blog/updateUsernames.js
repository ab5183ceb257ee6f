// Gives everything a user wrote in this logical partition the user's present name. Doing it again
// changes nothing, so it may be delivered twice.
function updateUsernames(userId, username) {
  const collection = getContext().getCollection();
  const query = {
    query: "SELECT * FROM p WHERE p.userId = @userId",
    parameters: [{ name: "@userId", value: userId }],
  };
  let updated = 0;
  readPage();

  function readPage(continuation) {
    check(collection.queryDocuments(collection.getSelfLink(), query, { continuation }, (error, items, info) => {
      if (error) throw error;
      items.filter((item) => item.userUsername !== username).forEach(rename);
      if (info && info.continuation) {
        readPage(info.continuation);
      } else {
        getContext().getResponse().setBody(updated);
      }
    }));
  }

  function rename(item) {
    item.userUsername = username;
    updated++;
    check(collection.replaceDocument(item._self, item, (error) => {
      if (error) throw error;
    }));
  }

  function check(isAccepted) {
    if (!isAccepted) throw new Error("the names were not accepted; try again");
  }
}
