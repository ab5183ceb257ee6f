// Adds a comment to a post and counts it, in one transaction.
function createComment(postId, comment) {
  const collection = getContext().getCollection();
  const link = collection.getAltLink() + "/docs/" + postId;
  const accepted = collection.readDocument(link, (error, post) => {
    if (error) throw error;
    post.commentCount++;
    check(collection.replaceDocument(post._self, post, (error) => {
      if (error) throw error;
      comment.postId = postId;
      check(collection.createDocument(collection.getSelfLink(), comment));
    }));
  });
  check(accepted);

  // What is not accepted is not done; the transaction must not commit without it.
  function check(isAccepted) {
    if (!isAccepted) throw new Error("the comment was not accepted; try again");
  }
}
