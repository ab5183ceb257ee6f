// Package conformance tests the server with Microsoft's SDK for Go.
//
// One server runs for all cases. A case makes databases and containers of its own, under names
// that nobody else uses, and depends on no other case. Queries share what their parent test made.
package conformance

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// object is an item, or a part of one.
type object = map[string]any

//go:embed skips.toml
var skips string

// skip ends a case that skips.toml turns off.
func skip(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(skips) {
		if name, reason, found := strings.Cut(line, " = "); found && name == `"`+t.Name()+`"` {
			t.Skip(strings.TrimSpace(reason))
		}
	}
}

// each runs a case below a test.
func each(t *testing.T, name string, run func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		skip(t)
		run(t)
	})
}

func unique(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:12])
}

// connect makes a client of its own.
func connect(t *testing.T, options *azcosmos.ClientOptions) *azcosmos.Client {
	t.Helper()
	credential := must(azcosmos.NewKeyCredential(accountKey))(t)
	client := must(azcosmos.NewClientWithKey(endpoint, credential, options))(t)
	t.Cleanup(client.Close)
	return client
}

// newDatabase makes a database for a case, and skips the case if skips.toml says so.
func newDatabase(t *testing.T) *azcosmos.DatabaseClient {
	t.Helper()
	return newDatabaseWith(t, nil)
}

// newDatabaseWith makes a database with throughput, if that is given. It is deleted with its case:
// an account has room for 500 databases and containers.
func newDatabaseWith(t *testing.T, ru *azcosmos.ThroughputProperties) *azcosmos.DatabaseClient {
	t.Helper()
	skip(t)
	client, definition := connect(t, nil), azcosmos.DatabaseProperties{ID: unique("db")}
	options := &azcosmos.CreateDatabaseOptions{ThroughputProperties: ru}
	must(client.CreateDatabase(t.Context(), definition, options))(t)
	database := must(client.NewDatabase(definition.ID))(t)
	t.Cleanup(func() {
		// The context of the test has ended by now.
		must(database.Delete(context.Background(), nil))(t)
	})
	return database
}

// newContainer makes a container keyed by /pk on one physical partition.
func newContainer(t *testing.T) *azcosmos.ContainerClient {
	t.Helper()
	return create(t, newDatabase(t), keyed("/pk"), 0)
}

// newPartitioned makes a container keyed by /pk on three physical partitions.
func newPartitioned(t *testing.T) *azcosmos.ContainerClient {
	t.Helper()
	return create(t, newDatabase(t), keyed("/pk"), threePartitions)
}

// A physical partition serves at most 10,000 RU/s.
const threePartitions = 30_000

// keyed is the definition of a container with these paths as its key.
func keyed(paths ...string) azcosmos.ContainerProperties {
	definition := azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2}
	return azcosmos.ContainerProperties{ID: unique("c"), PartitionKeyDefinition: definition}
}

// create makes a container by its definition, with manual throughput unless that is zero.
func create(
	t *testing.T, database *azcosmos.DatabaseClient, definition azcosmos.ContainerProperties, ru int32,
) *azcosmos.ContainerClient {
	t.Helper()
	var options azcosmos.CreateContainerOptions
	if ru > 0 {
		options.ThroughputProperties = to.Ptr(azcosmos.NewManualThroughputProperties(ru))
	}
	must(database.CreateContainer(t.Context(), definition, &options))(t)
	return must(database.NewContainer(definition.ID))(t)
}

// reopened is the same container through another client.
func reopened(
	t *testing.T, database *azcosmos.DatabaseClient, container *azcosmos.ContainerClient,
) *azcosmos.ContainerClient {
	t.Helper()
	return must(connect(t, nil).NewContainer(database.ID(), container.ID()))(t)
}

// key is a partition key of these values; none at all means every partition, in queries.
func key(values ...any) azcosmos.PartitionKey {
	pk := azcosmos.NewPartitionKey()
	for _, value := range values {
		switch value := value.(type) {
		case nil:
			pk = pk.AppendNull()
		case string:
			pk = pk.AppendString(value)
		case bool:
			pk = pk.AppendBool(value)
		case int:
			pk = pk.AppendNumber(float64(value))
		case float64:
			pk = pk.AppendNumber(value)
		default:
			panic("a key is null, text, a truth value or a number")
		}
	}
	return pk
}

// put creates an item under the key that its property pk names.
func put(t *testing.T, c *azcosmos.ContainerClient, item object) azcosmos.ItemResponse {
	t.Helper()
	return must(c.CreateItem(t.Context(), key(item["pk"]), encode(t, item), nil))(t)
}

// read answers the user's own properties of an item.
func read(t *testing.T, c *azcosmos.ContainerClient, pk azcosmos.PartitionKey, id string) object {
	t.Helper()
	return user(decode(t, must(c.ReadItem(t.Context(), pk, id, nil))(t).Value).(object))
}

// user is an item without the properties that the server adds.
func user(item object) object {
	for _, name := range []string{"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"} {
		delete(item, name)
	}
	return item
}

// query answers all rows of a query, read by one pager.
func query(
	t *testing.T, c *azcosmos.ContainerClient, pk azcosmos.PartitionKey, text string,
	o *azcosmos.QueryOptions,
) []any {
	t.Helper()
	found := []any{}
	for pager := c.NewQueryItemsPager(text, pk, o); pager.More(); {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		found = append(found, decodeAll(t, page.Items)...)
	}
	return found
}

// must ends a case whose call fails: must(call())(t) is what the call answers.
func must[T any](answer T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

// fails expects a failure of the service with this status and, if not zero, sub-status.
func fails[T any](_ T, err error) func(t *testing.T, want status) {
	return func(t *testing.T, want status) {
		t.Helper()
		found := statusOf(err)
		if want.sub == "" {
			found.sub = ""
		}
		if found != want {
			t.Errorf("status is %v, expected %v: %v", found, want, err)
		}
	}
}

// status is a status with its sub-status, which is empty where it does not matter.
type status struct {
	code int
	sub  string
}

var (
	badRequest   = status{code: 400}
	keyMismatch  = status{code: 400, sub: "1001"}
	unauthorized = status{code: 401}
	notFound     = status{code: 404}
	noSession    = status{code: 404, sub: "1002"}
	noOwner      = status{code: 404, sub: "1003"}
	conflict     = status{code: 409}
	precondition = status{code: 412}
	tooLarge     = status{code: 413}
)

// statusOf answers the status of a failed call, and zero for a call that did not fail so.
func statusOf(err error) status {
	var failure *azcore.ResponseError
	if !errors.As(err, &failure) {
		return status{}
	}
	return status{failure.StatusCode, failure.RawResponse.Header.Get("x-ms-substatus")}
}

// same expects two values to be equal as JSON.
func same(t *testing.T, found, want any) {
	t.Helper()
	if found, want := canonical(t, found), canonical(t, want); found != want {
		t.Errorf("found %s, expected %s", found, want)
	}
}

// sameInAnyOrder expects the same rows, however they are ordered.
func sameInAnyOrder(t *testing.T, found, want []any) {
	t.Helper()
	sorted := func(rows []any) []string {
		texts := []string{}
		for _, row := range rows {
			texts = append(texts, canonical(t, row))
		}
		slices.Sort(texts)
		return texts
	}
	same(t, sorted(found), sorted(want))
}

// canonical is the same text for the same JSON value, whatever Go type holds it.
func canonical(t *testing.T, value any) string {
	t.Helper()
	return string(encode(t, decode(t, encode(t, value))))
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	return must(json.Marshal(value))(t)
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

func decodeAll(t *testing.T, texts [][]byte) []any {
	t.Helper()
	values := []any{}
	for _, text := range texts {
		values = append(values, decode(t, text))
	}
	return values
}

// ids are the ids of items, in their order.
func ids(items []any) []string {
	found := []string{}
	for _, item := range items {
		found = append(found, item.(object)["id"].(string))
	}
	return found
}
