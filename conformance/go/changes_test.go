package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// whole is the feed range of all keys.
var whole = azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

// drain reads a feed until nothing is left, and answers the items and where to go on.
func drain(
	t *testing.T, c *azcosmos.ContainerClient, o azcosmos.ChangeFeedOptions,
) ([]any, string) {
	t.Helper()
	found := []any{}
	for range 200 {
		page := must(c.ReadChangeFeed(t.Context(), &o))(t)
		if page.ContinuationToken == "" {
			t.Fatal("a page says nowhere to go on")
		}
		if o.MaxItemCount > 0 && len(page.Items) > int(o.MaxItemCount) {
			t.Errorf("a page has %d items", len(page.Items))
		}
		found, o.Continuation = append(found, decodeAll(t, page.Items)...), &page.ContinuationToken
		if len(page.Items) == 0 {
			expectStatus(t, page.Response, 304)
			return found, page.ContinuationToken
		}
	}
	t.Fatal("the feed never ends")
	return nil, ""
}

// fillThirty creates thirty items under ten keys.
func fillThirty(t *testing.T, c *azcosmos.ContainerClient) []string {
	t.Helper()
	names := []string{}
	for n := range 30 {
		id := fmt.Sprintf("i%02d", n)
		put(t, c, object{"id": id, "pk": fmt.Sprintf("p%d", n%10)})
		names = append(names, id)
	}
	return names
}

func TestFeedHasTheLastVersionsInOrderOfChange(t *testing.T) {
	c := newContainer(t)
	for _, id := range []string{"a", "b", "c"} {
		put(t, c, object{"id": id, "pk": "p"})
	}
	must(c.UpsertItem(t.Context(), key("p"), []byte(`{"id":"a","pk":"p","v":2}`), nil))(t)
	must(c.DeleteItem(t.Context(), key("p"), "b", nil))(t)
	found, _ := drain(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole})
	same(t, ids(found), []string{"c", "a"})
	same(t, found[1].(object)["v"], 2)
}

func TestFeedOfAnEmptyContainerIs304(t *testing.T) {
	c := newPartitioned(t)
	found, _ := drain(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole})
	same(t, found, []any{})
}

func TestFeedOfTheWholeContainerHasEveryItemOnce(t *testing.T) {
	c := newPartitioned(t)
	names := fillThirty(t, c)
	for _, size := range []int32{1, 7, 1000} {
		options := azcosmos.ChangeFeedOptions{FeedRange: &whole, MaxItemCount: size}
		found, _ := drain(t, c, options)
		got := ids(found)
		slices.Sort(got)
		same(t, got, names)
	}
}

func TestFeedRangesShareTheItems(t *testing.T) {
	c := newPartitioned(t)
	names := fillThirty(t, c)
	var got []string
	for _, one := range must(c.ReadFeedRanges(t.Context(), nil))(t) {
		found, _ := drain(t, c, azcosmos.ChangeFeedOptions{FeedRange: &one, MaxItemCount: 4})
		if len(found) == 0 {
			t.Errorf("the range %v has no items", one)
		}
		got = append(got, ids(found)...)
	}
	slices.Sort(got)
	same(t, got, names)
}

func TestFeedGoesOnWhereItsTokenSays(t *testing.T) {
	database := newDatabase(t)
	c := create(t, database, keyed("/pk"), threePartitions)
	fillThirty(t, c)
	_, token := drain(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole})
	put(t, c, object{"id": "late", "pk": "p3"})
	must(c.UpsertItem(t.Context(), key("p4"), []byte(`{"id":"i04","pk":"p4","v":2}`), nil))(t)
	other := reopened(t, database, c)
	found, token := drain(t, other, azcosmos.ChangeFeedOptions{Continuation: &token})
	got := ids(found)
	slices.Sort(got)
	same(t, got, []string{"i04", "late"})
	found, _ = drain(t, other, azcosmos.ChangeFeedOptions{Continuation: &token})
	same(t, found, []any{})
}

func TestFeedOfAKeyHasItsItemsOnly(t *testing.T) {
	c := newContainer(t)
	fillThirty(t, c)
	pk := key("p3")
	options := azcosmos.ChangeFeedOptions{FeedRange: &whole, PartitionKey: &pk, MaxItemCount: 2}
	found, token := drain(t, c, options)
	same(t, ids(found), []string{"i03", "i13", "i23"})
	put(t, c, object{"id": "other", "pk": "p4"})
	put(t, c, object{"id": "late", "pk": "p3"})
	options.Continuation = &token
	found, _ = drain(t, c, options)
	same(t, ids(found), []string{"late"})
}

func TestFeedOfAKeyAmongPartitionsHasItsItemsOnce(t *testing.T) {
	c := newPartitioned(t)
	fillThirty(t, c)
	pk := key("p3")
	options := azcosmos.ChangeFeedOptions{FeedRange: &whole, PartitionKey: &pk}
	found, _ := drain(t, c, options)
	same(t, ids(found), []string{"i03", "i13", "i23"})
}

// The SDK writes the time with the zone UTC, not GMT.
func TestFeedStartsAtATime(t *testing.T) {
	c := newContainer(t)
	fillThirty(t, c)
	past := time.Now().Add(-time.Hour)
	options := azcosmos.ChangeFeedOptions{FeedRange: &whole, StartFrom: &past}
	found, _ := drain(t, c, options)
	same(t, len(found), 30)
}

func TestFeedHasBatchesInTheirOrder(t *testing.T) {
	c := newContainer(t)
	batch := c.NewTransactionalBatch(key("p"))
	for _, id := range []string{"c", "a", "b"} {
		batch.CreateItem(encode(t, object{"id": id, "pk": "p"}), nil)
	}
	must(c.ExecuteTransactionalBatch(t.Context(), batch, nil))(t)
	found, _ := drain(t, c, azcosmos.ChangeFeedOptions{FeedRange: &whole})
	same(t, ids(found), []string{"c", "a", "b"})
}
