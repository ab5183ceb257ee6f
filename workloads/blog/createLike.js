// Adds a like to a post and counts it, in one transaction.
function createLike(postId, like) {
  const collection = getContext().getCollection();
  const link = collection.getAltLink() + "/docs/" + postId;
  const accepted = collection.readDocument(link, (error, post) => {
    if (error) throw error;
    post.likeCount++;
    check(collection.replaceDocument(post._self, post, (error) => {
      if (error) throw error;
      like.postId = postId;
      check(collection.createDocument(collection.getSelfLink(), like));
    }));
  });
  check(accepted);

  // What is not accepted is not done; the transaction must not commit without it.
  function check(isAccepted) {
    if (!isAccepted) throw new Error("the like was not accepted; try again");
  }
}
