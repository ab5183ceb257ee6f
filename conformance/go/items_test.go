package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// spoken are options that ask for the body of a write.
var spoken = &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}

// guarded are options that make a write depend on the etag that an earlier one answered.
func guarded(written azcosmos.ItemResponse) *azcosmos.ItemOptions {
	return &azcosmos.ItemOptions{IfMatchEtag: &written.ETag}
}

func expectStatus(t *testing.T, response azcosmos.Response, want int) {
	t.Helper()
	if found := response.RawResponse.StatusCode; found != want {
		t.Errorf("status is %d, expected %d", found, want)
	}
}

func TestCreateTellsWhatItDid(t *testing.T) {
	c := newContainer(t)
	created := put(t, c, object{"id": "a", "pk": "p"})
	expectStatus(t, created.Response, 201)
	if created.RequestCharge <= 0 || created.ETag == "" || created.ActivityID == "" {
		t.Errorf("the response is %+v", created)
	}
	if created.SessionToken == nil {
		t.Error("there is no session token")
	}
}

func TestItemIsReadAsItWasWritten(t *testing.T) {
	c := newContainer(t)
	item := object{
		"id": "a", "pk": "p",
		"integers": []int64{0, 1, -1, 255, 65_536, 4_294_967_296, 9_007_199_254_740_991},
		"numbers":  []float64{1.5, -0.25, 1e300, 1e-7, 0.1},
		"texts":    []string{"", "x", strings.Repeat("long ", 20_000), "é😀\u2028\"\\\n\t</script>"},
		"nothing":  nil, "yes": true, "no": false,
		"empty":  object{"array": []any{}, "object": object{}},
		"nested": []any{[]any{1, []any{2, []any{3}}}, object{"a": object{"b": object{"c": nil}}}},
		"":       "a name without letters", "a.b/c": "a name with signs",
	}
	put(t, c, item)
	same(t, read(t, c, key("p"), "a"), item)
}

func TestReadItemHasSystemProperties(t *testing.T) {
	c := newContainer(t)
	created := put(t, c, object{"id": "a", "pk": "p"})
	found := must(c.ReadItem(t.Context(), key("p"), "a", nil))(t)
	expectStatus(t, found.Response, 200)
	item := decode(t, found.Value).(object)
	for _, name := range []string{"_rid", "_self", "_ts", "_attachments"} {
		if item[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	same(t, []any{item["_etag"], found.ETag}, []any{created.ETag, created.ETag})
}

func TestBodiesComeBackOnlyWhenAskedFor(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	item := object{"id": "a", "pk": "p"}
	if silent := put(t, c, item); len(silent.Value) > 0 {
		t.Errorf("a body came unasked: %s", silent.Value)
	}
	body := encode(t, item)
	replaced := must(c.ReplaceItem(ctx, key("p"), "a", body, spoken))(t)
	same(t, user(decode(t, replaced.Value).(object)), item)
	upserted := must(c.UpsertItem(ctx, key("p"), body, spoken))(t)
	same(t, user(decode(t, upserted.Value).(object)), item)
}

func TestClientMayAskForBodiesOfAllWrites(t *testing.T) {
	database := newDatabase(t)
	c := create(t, database, keyed("/pk"), 0)
	client := connect(t, &azcosmos.ClientOptions{EnableContentResponseOnWrite: true})
	c = must(client.NewContainer(database.ID(), c.ID()))(t)
	item := object{"id": "a", "pk": "p"}
	same(t, user(decode(t, put(t, c, item).Value).(object)), item)
}

func TestUpsertCreatesThenReplaces(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	first := must(c.UpsertItem(ctx, key("p"), []byte(`{"id":"a","pk":"p","old":1}`), nil))(t)
	expectStatus(t, first.Response, 201)
	second := must(c.UpsertItem(ctx, key("p"), []byte(`{"id":"a","pk":"p","new":1}`), nil))(t)
	expectStatus(t, second.Response, 200)
	same(t, read(t, c, key("p"), "a"), object{"id": "a", "pk": "p", "new": 1})
}

func TestReplaceKeepsNothingOfTheOldBody(t *testing.T) {
	c := newContainer(t)
	created := put(t, c, object{"id": "a", "pk": "p", "old": 1})
	item := object{"id": "a", "pk": "p", "new": 1}
	replaced := must(c.ReplaceItem(t.Context(), key("p"), "a", encode(t, item), nil))(t)
	expectStatus(t, replaced.Response, 200)
	if replaced.ETag == created.ETag {
		t.Error("the etag is still the same")
	}
	same(t, read(t, c, key("p"), "a"), item)
}

func TestReplaceMayGiveAnotherID(t *testing.T) {
	c := newContainer(t)
	put(t, c, object{"id": "a", "pk": "p"})
	item := object{"id": "b", "pk": "p"}
	must(c.ReplaceItem(t.Context(), key("p"), "a", encode(t, item), nil))(t)
	same(t, read(t, c, key("p"), "b"), item)
	fails(c.ReadItem(t.Context(), key("p"), "a", nil))(t, notFound)
}

func TestDeletedItemIsGone(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	put(t, c, object{"id": "a", "pk": "p"})
	expectStatus(t, must(c.DeleteItem(ctx, key("p"), "a", nil))(t).Response, 204)
	fails(c.ReadItem(ctx, key("p"), "a", nil))(t, notFound)
	fails(c.DeleteItem(ctx, key("p"), "a", nil))(t, notFound)
	put(t, c, object{"id": "a", "pk": "p"})
}

func TestMissingItemIs404(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	put(t, c, object{"id": "a", "pk": "p"})
	fails(c.ReadItem(ctx, key("other"), "a", nil))(t, notFound)
	fails(c.ReplaceItem(ctx, key("p"), "b", []byte(`{"id":"b","pk":"p"}`), nil))(t, notFound)
	var patch azcosmos.PatchOperations
	patch.AppendSet("/v", 1)
	fails(c.PatchItem(ctx, key("p"), "b", patch, nil))(t, notFound)
}

func TestMissingContainerIs404WithItsOwnSubStatus(t *testing.T) {
	database := newDatabase(t)
	c := must(database.NewContainer("none"))(t)
	fails(c.CreateItem(t.Context(), key("p"), []byte(`{"id":"a","pk":"p"}`), nil))(t, noOwner)
	fails(c.NewQueryItemsPager("SELECT * FROM c", key("p"), nil).NextPage(t.Context()))(t, notFound)
}

func TestTakenIDIs409WithinItsKeyOnly(t *testing.T) {
	c := newContainer(t)
	put(t, c, object{"id": "a", "pk": "p"})
	fails(c.CreateItem(t.Context(), key("p"), []byte(`{"id":"a","pk":"p"}`), nil))(t, conflict)
	put(t, c, object{"id": "a", "pk": "q"})
}

func TestBodiesThatAreRefused(t *testing.T) {
	c := newContainer(t)
	large := fmt.Sprintf(`{"id":"a","pk":"p","text":"%s"}`, strings.Repeat("x", 2<<20))
	for _, one := range []struct {
		name, body string
		want       status
	}{
		{"key other than the one named", `{"id":"a","pk":"q"}`, keyMismatch},
		{"text that is not JSON", `{"id":"a","pk":"p"`, badRequest},
		{"item without id", `{"pk":"p"}`, badRequest},
		{"id that is no text", `{"id":1,"pk":"p"}`, badRequest},
		{"more than two megabytes", large, tooLarge},
	} {
		each(t, one.name, func(t *testing.T) {
			fails(c.CreateItem(t.Context(), key("p"), []byte(one.body), nil))(t, one.want)
		})
	}
}

func TestStaleEtagStopsEveryWrite(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	body := []byte(`{"id":"a","pk":"p"}`)
	first := put(t, c, object{"id": "a", "pk": "p"})
	must(c.ReplaceItem(ctx, key("p"), "a", body, guarded(first)))(t)
	fails(c.ReplaceItem(ctx, key("p"), "a", body, guarded(first)))(t, precondition)
	fails(c.UpsertItem(ctx, key("p"), body, guarded(first)))(t, precondition)
	fails(c.DeleteItem(ctx, key("p"), "a", guarded(first)))(t, precondition)
	var patch azcosmos.PatchOperations
	patch.AppendSet("/v", 1)
	fails(c.PatchItem(ctx, key("p"), "a", patch, guarded(first)))(t, precondition)
	same(t, read(t, c, key("p"), "a"), object{"id": "a", "pk": "p"})
}

func TestCurrentEtagLetsEveryWritePass(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	body := []byte(`{"id":"a","pk":"p"}`)
	last := put(t, c, object{"id": "a", "pk": "p"})
	last = must(c.ReplaceItem(ctx, key("p"), "a", body, guarded(last)))(t)
	last = must(c.UpsertItem(ctx, key("p"), body, guarded(last)))(t)
	var patch azcosmos.PatchOperations
	patch.AppendSet("/v", 1)
	last = must(c.PatchItem(ctx, key("p"), "a", patch, guarded(last)))(t)
	must(c.DeleteItem(ctx, key("p"), "a", guarded(last)))(t)
}

func TestPatchDoesAllItsOperations(t *testing.T) {
	c := newContainer(t)
	put(t, c, object{
		"id": "a", "pk": "p", "n": 1, "list": []int{1, 2}, "old": true, "o": object{"x": 1},
	})
	var patch azcosmos.PatchOperations
	patch.AppendAdd("/list/1", 9)
	patch.AppendAdd("/list/-", "end")
	patch.AppendIncrement("/n", -5)
	patch.AppendRemove("/old")
	patch.AppendReplace("/o/x", []any{nil})
	patch.AppendSet("/o/y", object{"deep": 0})
	patched := must(c.PatchItem(t.Context(), key("p"), "a", patch, spoken))(t)
	expectStatus(t, patched.Response, 200)
	want := object{
		"id": "a", "pk": "p", "n": -4, "list": []any{1, 9, 2, "end"},
		"o": object{"x": []any{nil}, "y": object{"deep": 0}},
	}
	same(t, user(decode(t, patched.Value).(object)), want)
	same(t, read(t, c, key("p"), "a"), want)
}

func TestPatchDependsOnItsCondition(t *testing.T) {
	c := newContainer(t)
	put(t, c, object{"id": "a", "pk": "p", "n": 1})
	var patch azcosmos.PatchOperations
	patch.AppendIncrement("/n", 1)
	patch.SetCondition("FROM c WHERE c.n = 1")
	must(c.PatchItem(t.Context(), key("p"), "a", patch, nil))(t)
	fails(c.PatchItem(t.Context(), key("p"), "a", patch, nil))(t, precondition)
	same(t, read(t, c, key("p"), "a"), object{"id": "a", "pk": "p", "n": 2})
}

func TestPatchesThatAreRefused(t *testing.T) {
	c := newContainer(t)
	item := object{"id": "a", "pk": "p", "text": "x"}
	put(t, c, item)
	type operations = azcosmos.PatchOperations
	for _, one := range []struct {
		name string
		fill func(patch *operations)
	}{
		{"replace of what is absent", func(p *operations) { p.AppendReplace("/none", 1) }},
		{"remove of what is absent", func(p *operations) { p.AppendRemove("/none") }},
		{"increment of a text", func(p *operations) { p.AppendIncrement("/text", 1) }},
		{"set of the key", func(p *operations) { p.AppendSet("/pk", "q") }},
		{"set below a text", func(p *operations) { p.AppendSet("/text/a", 1) }},
		{"condition that is no query", func(p *operations) {
			p.AppendSet("/v", 1)
			p.SetCondition("nonsense")
		}},
		{"eleven operations", func(p *operations) {
			for n := range 11 {
				p.AppendSet(fmt.Sprintf("/p%d", n), n)
			}
		}},
	} {
		each(t, one.name, func(t *testing.T) {
			var patch operations
			one.fill(&patch)
			fails(c.PatchItem(t.Context(), key("p"), "a", patch, nil))(t, badRequest)
			same(t, read(t, c, key("p"), "a"), item)
		})
	}
}

func TestUniqueKeyIs409WithinItsKeyOnly(t *testing.T) {
	definition := keyed("/pk")
	definition.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{
		UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/mail"}}},
	}
	c := create(t, newDatabase(t), definition, 0)
	put(t, c, object{"id": "a", "pk": "p", "mail": "m"})
	taken := []byte(`{"id":"b","pk":"p","mail":"m"}`)
	fails(c.CreateItem(t.Context(), key("p"), taken, nil))(t, conflict)
	put(t, c, object{"id": "b", "pk": "q", "mail": "m"})
}

func TestHintsOfARequestAreAccepted(t *testing.T) {
	c := newContainer(t)
	put(t, c, object{"id": "a", "pk": "p"})
	cached := azcosmos.DedicatedGatewayRequestOptions{
		MaxIntegratedCacheStaleness: to.Ptr(time.Minute),
	}
	options := &azcosmos.ItemOptions{
		PriorityLevel:                  to.Ptr(azcosmos.PriorityLevelLow),
		ThroughputBucket:               to.Ptr[int32](1),
		DedicatedGatewayRequestOptions: &cached,
	}
	must(c.ReadItem(t.Context(), key("p"), "a", options))(t)
}
