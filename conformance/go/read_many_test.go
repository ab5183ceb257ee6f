package conformance

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// expectMany reads many items and expects just these, in any order.
func expectMany(
	t *testing.T, c *azcosmos.ContainerClient, identities []azcosmos.ItemIdentity, want []any,
) {
	t.Helper()
	found := must(c.ReadManyItems(t.Context(), identities, nil))(t)
	items := []any{}
	for _, item := range decodeAll(t, found.Items) {
		items = append(items, user(item.(object)))
	}
	sameInAnyOrder(t, items, want)
	if found.RequestCharge <= 0 {
		t.Error("nothing was charged")
	}
}

func TestReadManyFindsItemsOnAllPartitions(t *testing.T) {
	c := newPartitioned(t)
	var identities []azcosmos.ItemIdentity
	var items []any
	for n := range 60 {
		item := object{"id": fmt.Sprintf("i%d", n), "pk": fmt.Sprintf("p%d", n%20), "n": n}
		put(t, c, item)
		if n%2 == 0 {
			identity := azcosmos.ItemIdentity{ID: item["id"].(string), PartitionKey: key(item["pk"])}
			identities, items = append(identities, identity), append(items, item)
		}
	}
	expectMany(t, c, identities, items)
}

func TestReadManyFindsKeysOfEveryType(t *testing.T) {
	c := newPartitioned(t)
	var identities []azcosmos.ItemIdentity
	var items []any
	for _, value := range []any{"text", "é\"\\", "", 1, -1.5, true, false, nil} {
		item := object{"id": "a", "pk": value}
		put(t, c, item)
		items = append(items, item)
		identities = append(identities, azcosmos.ItemIdentity{ID: "a", PartitionKey: key(value)})
	}
	expectMany(t, c, identities, items)
}

func TestReadManyLeavesOutWhatIsMissing(t *testing.T) {
	c := newPartitioned(t)
	put(t, c, object{"id": "a", "pk": "p"})
	put(t, c, object{"id": "b", "pk": "q"})
	expectMany(t, c, []azcosmos.ItemIdentity{
		{ID: "a", PartitionKey: key("p")},
		{ID: "b", PartitionKey: key("p")},
		{ID: "none", PartitionKey: key("q")},
	}, []any{object{"id": "a", "pk": "p"}})
}

func TestReadManyFindsItemsUnderTheirID(t *testing.T) {
	c := create(t, newDatabase(t), keyed("/id"), threePartitions)
	var identities []azcosmos.ItemIdentity
	var items []any
	for n := range 20 {
		id := fmt.Sprintf("i%d", n)
		must(c.CreateItem(t.Context(), key(id), encode(t, object{"id": id}), nil))(t)
		identities = append(identities, azcosmos.ItemIdentity{ID: id, PartitionKey: key(id)})
		items = append(items, object{"id": id})
	}
	expectMany(t, c, identities, items)
}

func TestReadManyFindsItemsUnderHierarchicalKeys(t *testing.T) {
	c, identities := newHierarchical(t)
	found := must(c.ReadManyItems(t.Context(), identities, nil))(t)
	want := []any{}
	for _, identity := range identities {
		want = append(want, identity.ID)
	}
	got := []any{}
	for _, id := range ids(decodeAll(t, found.Items)) {
		got = append(got, id)
	}
	sameInAnyOrder(t, got, want)
}

// The SDK asks for at most a thousand items at a time.
func TestReadManyFindsMoreThanAThousandItems(t *testing.T) {
	c := newPartitioned(t)
	var identities []azcosmos.ItemIdentity
	for k := range 12 {
		pk := fmt.Sprintf("p%d", k)
		batch := c.NewTransactionalBatch(key(pk))
		for n := range 100 {
			id := fmt.Sprintf("i%d-%d", k, n)
			batch.CreateItem(encode(t, object{"id": id, "pk": pk}), nil)
			identities = append(identities, azcosmos.ItemIdentity{ID: id, PartitionKey: key(pk)})
		}
		must(c.ExecuteTransactionalBatch(t.Context(), batch, nil))(t)
	}
	found := must(c.ReadManyItems(t.Context(), identities, nil))(t)
	same(t, len(found.Items), 1200)
}
