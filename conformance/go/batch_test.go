package conformance

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func statuses(response azcosmos.TransactionalBatchResponse) []int32 {
	found := []int32{}
	for _, one := range response.OperationResults {
		found = append(found, one.StatusCode)
	}
	return found
}

func TestBatchDoesAllItsOperations(t *testing.T) {
	c := newContainer(t)
	old := put(t, c, object{"id": "old", "pk": "p"})
	put(t, c, object{"id": "doomed", "pk": "p"})
	batch := c.NewTransactionalBatch(key("p"))
	batch.CreateItem([]byte(`{"id":"new","pk":"p","n":1}`), nil)
	batch.UpsertItem([]byte(`{"id":"up","pk":"p"}`), nil)
	current := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &old.ETag}
	batch.ReplaceItem("old", []byte(`{"id":"old","pk":"p","v":2}`), current)
	var patch azcosmos.PatchOperations
	patch.AppendIncrement("/n", 4)
	batch.PatchItem("new", patch, nil)
	batch.ReadItem("new", nil)
	batch.DeleteItem("doomed", nil)
	response := must(c.ExecuteTransactionalBatch(t.Context(), batch, nil))(t)
	expectStatus(t, response.Response, 200)
	same(t, statuses(response), []int{201, 201, 200, 200, 200, 204})
	if !response.Success || response.SessionToken == "" || response.RequestCharge <= 0 {
		t.Errorf("the response is %+v", response)
	}
	seen := decode(t, response.OperationResults[4].ResourceBody).(object)
	same(t, user(seen), object{"id": "new", "pk": "p", "n": 5})
	same(t, read(t, c, key("p"), "old"), object{"id": "old", "pk": "p", "v": 2})
	fails(c.ReadItem(t.Context(), key("p"), "doomed", nil))(t, notFound)
}

func TestBatchIsAllOrNothing(t *testing.T) {
	c := newContainer(t)
	taken := put(t, c, object{"id": "taken", "pk": "p"})
	must(c.UpsertItem(t.Context(), key("p"), []byte(`{"id":"taken","pk":"p"}`), nil))(t)
	stale := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &taken.ETag}
	type batch = azcosmos.TransactionalBatch
	for _, one := range []struct {
		name string
		fail func(batch *batch)
		want int
	}{
		{"create of what is there", func(b *batch) {
			b.CreateItem([]byte(`{"id":"taken","pk":"p"}`), nil)
		}, 409},
		{"replace of what is absent", func(b *batch) {
			b.ReplaceItem("none", []byte(`{"id":"none","pk":"p"}`), nil)
		}, 404},
		{"read of what is absent", func(b *batch) { b.ReadItem("none", nil) }, 404},
		{"delete under a stale etag", func(b *batch) { b.DeleteItem("taken", stale) }, 412},
		{"patch under a condition that fails", func(b *batch) {
			var patch azcosmos.PatchOperations
			patch.AppendSet("/v", 1)
			patch.SetCondition("FROM c WHERE c.v = 1")
			b.PatchItem("taken", patch, nil)
		}, 412},
	} {
		each(t, one.name, func(t *testing.T) {
			batch := c.NewTransactionalBatch(key("p"))
			batch.CreateItem([]byte(`{"id":"first","pk":"p"}`), nil)
			one.fail(&batch)
			batch.CreateItem([]byte(`{"id":"last","pk":"p"}`), nil)
			response := must(c.ExecuteTransactionalBatch(t.Context(), batch, nil))(t)
			expectStatus(t, response.Response, 207)
			same(t, statuses(response), []int{424, one.want, 424})
			if response.Success {
				t.Error("the batch claims to have succeeded")
			}
			rows := query(t, c, key("p"), "SELECT VALUE c.id FROM c", nil)
			same(t, rows, []any{"taken"})
		})
	}
}

func TestBatchReturnsBodiesOnlyWhenAskedFor(t *testing.T) {
	c := newContainer(t)
	type options = azcosmos.TransactionalBatchOptions
	run := func(id string, o *options) azcosmos.TransactionalBatchResult {
		batch := c.NewTransactionalBatch(key("p"))
		batch.CreateItem(encode(t, object{"id": id, "pk": "p"}), nil)
		return must(c.ExecuteTransactionalBatch(t.Context(), batch, o))(t).OperationResults[0]
	}
	silent := run("a", nil)
	if len(silent.ResourceBody) > 0 || silent.ETag == "" || silent.RequestCharge <= 0 {
		t.Errorf("the result is %+v", silent)
	}
	asked := run("b", &options{EnableContentResponseOnWrite: true})
	body := decode(t, asked.ResourceBody).(object)
	same(t, azcore.ETag(body["_etag"].(string)), asked.ETag)
	same(t, user(body), object{"id": "b", "pk": "p"})
}

func TestBatchHasAtMostAHundredOperations(t *testing.T) {
	c := newContainer(t)
	batchOf := func(count int) azcosmos.TransactionalBatch {
		batch := c.NewTransactionalBatch(key("p"))
		for n := range count {
			batch.CreateItem(fmt.Appendf(nil, `{"id":"%d-%d","pk":"p"}`, count, n), nil)
		}
		return batch
	}
	hundred := must(c.ExecuteTransactionalBatch(t.Context(), batchOf(100), nil))(t)
	same(t, len(hundred.OperationResults), 100)
	fails(c.ExecuteTransactionalBatch(t.Context(), batchOf(101), nil))(t, badRequest)
	same(t, query(t, c, key("p"), "SELECT VALUE COUNT(1) FROM c", nil), []any{100})
}

func TestBatchRunsUnderAHierarchicalKey(t *testing.T) {
	c, _ := newHierarchical(t)
	batch := c.NewTransactionalBatch(key("t1", 3, false))
	batch.CreateItem([]byte(`{"id":"new","tenant":"t1","user":3,"open":false}`), nil)
	batch.DeleteItem("i07", nil)
	response := must(c.ExecuteTransactionalBatch(t.Context(), batch, nil))(t)
	same(t, statuses(response), []int{201, 204})
	rows := query(t, c, key("t1", 3, false), "SELECT VALUE c.id FROM c", nil)
	same(t, rows, []any{"new"})
}
