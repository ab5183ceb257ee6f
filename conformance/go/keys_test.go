package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The SDK writes what lies beyond the basic plane, such as emoji, and most control characters as Go
// does and not as JSON, so no such key can be sent.
func TestKeysOfEveryType(t *testing.T) {
	c := newPartitioned(t)
	for _, one := range []struct {
		name  string
		value any
	}{
		{"text", "text"},
		{"empty text", ""},
		{"text beyond ASCII", "é日本"},
		{"text with signs", `a"b\c/d`},
		{"long text", strings.Repeat("k", 2000)},
		{"number", 7},
		{"fraction", -1.5},
		{"zero", 0},
		{"large number", 1e300},
		{"true", true},
		{"false", false},
		{"null", nil},
	} {
		each(t, one.name, func(t *testing.T) {
			item := object{"id": "a", "pk": one.value}
			put(t, c, item)
			same(t, read(t, c, key(one.value), "a"), item)
			rows := query(t, c, key(one.value), "SELECT VALUE c.pk FROM c", nil)
			same(t, rows, []any{one.value})
		})
	}
}

func TestKeysOfOtherTypesAreOtherKeys(t *testing.T) {
	c := newPartitioned(t)
	for _, value := range []any{"1", 1, "true", true, "null", nil, "", 0, false} {
		put(t, c, object{"id": "a", "pk": value})
	}
	same(t, query(t, c, key(), "SELECT VALUE COUNT(1) FROM c", nil), []any{9})
	same(t, query(t, c, key(1), "SELECT VALUE c.pk FROM c", nil), []any{1})
}

func TestItemIsFoundByItsKeyOnly(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	put(t, c, object{"id": "a", "pk": "p"})
	fails(c.ReadItem(ctx, key(), "a", nil))(t, badRequest)
	fails(c.DeleteItem(ctx, key(), "a", nil))(t, badRequest)
	fails(c.ReadItem(ctx, key("p", "q"), "a", nil))(t, badRequest)
	fails(c.ReadItem(ctx, key("q"), "a", nil))(t, notFound)
}

func TestIDsOfEveryKind(t *testing.T) {
	c := newContainer(t)
	for _, id := range []string{
		"a b", "a%20b", "100%", "a+b", "a&b=c", "it's", `a"b`, "a.b:c;d,e", "~!@$^*()[]{}|<>`",
		"日本語😀", "ünï", "a..b",
	} {
		each(t, id, func(t *testing.T) {
			item := object{"id": id, "pk": "p"}
			put(t, c, item)
			same(t, read(t, c, key("p"), id), item)
			must(c.ReplaceItem(t.Context(), key("p"), id, encode(t, item), nil))(t)
			must(c.DeleteItem(t.Context(), key("p"), id, nil))(t)
		})
	}
}

func TestIDMayBeLongButNotTooLong(t *testing.T) {
	c := newContainer(t)
	item := object{"id": strings.Repeat("i", 255), "pk": "p"}
	put(t, c, item)
	same(t, read(t, c, key("p"), item["id"].(string)), item)
	item["id"] = strings.Repeat("i", 1024)
	fails(c.CreateItem(t.Context(), key("p"), encode(t, item), nil))(t, badRequest)
}

// newHierarchical makes a container keyed by three levels, with an item for each of 24 keys.
func newHierarchical(t *testing.T) (*azcosmos.ContainerClient, []azcosmos.ItemIdentity) {
	t.Helper()
	definition := keyed("/tenant", "/user", "/open")
	definition.PartitionKeyDefinition.Kind = azcosmos.PartitionKeyKindMultiHash
	c := create(t, newDatabase(t), definition, threePartitions)
	var identities []azcosmos.ItemIdentity
	for n := range 24 {
		tenant, user, open := fmt.Sprintf("t%d", n%3), n%4, n >= 12
		id, full := fmt.Sprintf("i%02d", n), key(tenant, user, open)
		item := object{"id": id, "tenant": tenant, "user": user, "open": open, "n": n}
		must(c.CreateItem(t.Context(), full, encode(t, item), nil))(t)
		identities = append(identities, azcosmos.ItemIdentity{ID: id, PartitionKey: full})
	}
	return c, identities
}

func TestHierarchicalKeysNameAnItem(t *testing.T) {
	c, _ := newHierarchical(t)
	item := object{"id": "i07", "tenant": "t1", "user": 3, "open": false, "n": 7}
	same(t, read(t, c, key("t1", 3, false), "i07"), item)
	fails(c.ReadItem(t.Context(), key("t1", 3, true), "i07", nil))(t, notFound)
	must(c.DeleteItem(t.Context(), key("t1", 3, false), "i07", nil))(t)
}

func TestPrefixOfAHierarchicalKeyIsQueried(t *testing.T) {
	c, _ := newHierarchical(t)
	for _, one := range []struct {
		name string
		key  azcosmos.PartitionKey
		want []any
	}{
		{"all levels", key("t1", 3, false), []any{7}},
		{"two levels", key("t1", 3), []any{7, 19}},
		{"one level", key("t1"), []any{1, 4, 7, 10, 13, 16, 19, 22}},
		{"a level that nobody has", key("t9"), []any{}},
	} {
		each(t, one.name, func(t *testing.T) {
			same(t, query(t, c, one.key, "SELECT VALUE c.n FROM c ORDER BY c.n", nil), one.want)
			count := query(t, c, one.key, "SELECT VALUE COUNT(1) FROM c", nil)
			same(t, count, []any{len(one.want)})
		})
	}
}

func TestPrefixOfAHierarchicalKeyNamesNoItem(t *testing.T) {
	c, _ := newHierarchical(t)
	fails(c.ReadItem(t.Context(), key("t1", 3), "i07", nil))(t, badRequest)
}

func TestHierarchicalKeyMayHoldNull(t *testing.T) {
	c, _ := newHierarchical(t)
	item := object{"id": "a", "tenant": "t0", "user": nil, "open": "odd"}
	must(c.CreateItem(t.Context(), key("t0", nil, "odd"), encode(t, item), nil))(t)
	same(t, read(t, c, key("t0", nil, "odd"), "a"), item)
	same(t, query(t, c, key("t0", nil), "SELECT VALUE c.id FROM c", nil), []any{"a"})
}
