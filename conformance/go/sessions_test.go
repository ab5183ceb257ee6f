package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestReadsSeeOwnWrites(t *testing.T) {
	c := newContainer(t)
	for v := range 10 {
		item := object{"id": "a", "pk": "p", "v": v}
		written := must(c.UpsertItem(t.Context(), key("p"), encode(t, item), nil))(t)
		options := &azcosmos.ItemOptions{SessionToken: written.SessionToken}
		found := must(c.ReadItem(t.Context(), key("p"), "a", options))(t)
		same(t, user(decode(t, found.Value).(object)), item)
	}
}

func TestEveryWriteMovesTheSessionToken(t *testing.T) {
	c := newContainer(t)
	seen := map[string]bool{}
	for range 5 {
		written := must(c.UpsertItem(t.Context(), key("p"), []byte(`{"id":"a","pk":"p"}`), nil))(t)
		if seen[*written.SessionToken] {
			t.Errorf("%s came twice", *written.SessionToken)
		}
		seen[*written.SessionToken] = true
	}
}

func TestSessionTokenServesAnotherClient(t *testing.T) {
	database := newDatabase(t)
	c := create(t, database, keyed("/pk"), threePartitions)
	token := put(t, c, object{"id": "a", "pk": "p"}).SessionToken
	other := reopened(t, database, c)
	must(other.ReadItem(t.Context(), key("p"), "a", &azcosmos.ItemOptions{SessionToken: token}))(t)
	options := &azcosmos.QueryOptions{SessionToken: token}
	rows := query(t, other, key("p"), "SELECT VALUE c.id FROM c", options)
	same(t, rows, []any{"a"})
	many := &azcosmos.ReadManyItemsOptions{SessionToken: token}
	identities := []azcosmos.ItemIdentity{{ID: "a", PartitionKey: key("p")}}
	same(t, len(must(other.ReadManyItems(t.Context(), identities, many))(t).Items), 1)
}

func TestSessionTokenOfTheFutureIs404(t *testing.T) {
	c := newContainer(t)
	put(t, c, object{"id": "a", "pk": "p"})
	future := "0:-1#999999999999"
	options := &azcosmos.ItemOptions{SessionToken: &future}
	fails(c.ReadItem(t.Context(), key("p"), "a", options))(t, noSession)
}

func TestConsistencyMayBeWeakenedOnly(t *testing.T) {
	c := newContainer(t)
	put(t, c, object{"id": "a", "pk": "p"})
	at := func(level azcosmos.ConsistencyLevel) *azcosmos.ItemOptions {
		return &azcosmos.ItemOptions{ConsistencyLevel: &level}
	}
	must(c.ReadItem(t.Context(), key("p"), "a", at(azcosmos.ConsistencyLevelEventual)))(t)
	must(c.ReadItem(t.Context(), key("p"), "a", at(azcosmos.ConsistencyLevelSession)))(t)
	fails(c.ReadItem(t.Context(), key("p"), "a", at(azcosmos.ConsistencyLevelStrong)))(t, badRequest)
}
