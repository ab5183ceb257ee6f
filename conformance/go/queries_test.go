package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// This SDK merges nothing: it sends a query without a key once and hands on what comes. So the
// server has to run queries over all partitions itself, aggregates and orders included. Each query
// here is asked of a container on one physical partition and of one on three.

// shelves are two containers with the same items, on one physical partition and on three.
func shelves(
	t *testing.T, definition azcosmos.ContainerProperties, items []object,
) []*azcosmos.ContainerClient {
	t.Helper()
	database := newDatabase(t)
	var both []*azcosmos.ContainerClient
	for _, ru := range []int32{0, threePartitions} {
		definition.ID = unique("c")
		c := create(t, database, definition, ru)
		path := definition.PartitionKeyDefinition.Paths[0][1:]
		for _, item := range items {
			must(c.CreateItem(t.Context(), key(item[path]), encode(t, item), nil))(t)
		}
		both = append(both, c)
	}
	return both
}

// question is a query and the rows it must have.
type question struct {
	name, text string
	// The logical partition it is asked of; nothing means all.
	within any
	// Parameters by their names.
	with object
	want []any
	// Whether the rows may come in any order.
	anyOrder bool
}

// asked runs a question on each container, in pages of one, of seven and of any size.
func asked(t *testing.T, containers []*azcosmos.ContainerClient, one question) {
	t.Helper()
	each(t, one.name, func(t *testing.T) {
		pk := key()
		if one.within != nil {
			pk = key(one.within)
		}
		for _, c := range containers {
			for _, size := range []int32{1, 7, -1} {
				options := azcosmos.QueryOptions{PageSizeHint: size}
				for name, value := range one.with {
					parameter := azcosmos.QueryParameter{Name: name, Value: value}
					options.QueryParameters = append(options.QueryParameters, parameter)
				}
				found := resumed(t, c, pk, one.text, options)
				if one.anyOrder {
					sameInAnyOrder(t, found, one.want)
				} else {
					same(t, found, one.want)
				}
			}
		}
	})
}

// resumed answers all rows of a query, each page from a pager of its own that begins where the
// token of the page before says.
func resumed(
	t *testing.T, c *azcosmos.ContainerClient, pk azcosmos.PartitionKey, text string,
	o azcosmos.QueryOptions,
) []any {
	t.Helper()
	found := []any{}
	for range 200 {
		page, err := c.NewQueryItemsPager(text, pk, &o).NextPage(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if o.PageSizeHint > 0 && len(page.Items) > int(o.PageSizeHint) {
			t.Fatalf("%s: a page of %d has %d rows", text, o.PageSizeHint, len(page.Items))
		}
		if page.RequestCharge <= 0 {
			t.Errorf("%s: a page is free", text)
		}
		found = append(found, decodeAll(t, page.Items)...)
		if page.ContinuationToken == nil {
			return found
		}
		o.ContinuationToken = page.ContinuationToken
	}
	t.Fatalf("%s: the pages never end", text)
	return nil
}

const numbersCount = 40

// numbers are forty items under eleven keys.
func numbers() []object {
	var items []object
	for n := range numbersCount {
		items = append(items, object{
			"id": fmt.Sprintf("i%02d", n), "pk": fmt.Sprintf("p%d", n%11), "n": n, "tie": n % 4,
			"word": fmt.Sprintf("w%d", n%7), "even": n%2 == 0, "list": []int{n, -n},
			"in": object{"half": float64(n) / 2},
		})
	}
	return items
}

// those are the numbers that are kept, upwards.
func those(keep func(n int) bool) []any {
	found := []any{}
	for n := range numbersCount {
		if keep(n) {
			found = append(found, n)
		}
	}
	return found
}

func span(from, end int) []any {
	return those(func(n int) bool { return from <= n && n < end })
}

func reversed(rows []any) []any {
	rows = slices.Clone(rows)
	slices.Reverse(rows)
	return rows
}

func newNumbers(t *testing.T) []*azcosmos.ContainerClient {
	t.Helper()
	definition := keyed("/pk")
	definition.IndexingPolicy = indexed()
	definition.IndexingPolicy.CompositeIndexes = [][]azcosmos.CompositeIndex{{
		{Path: "/tie", Order: azcosmos.CompositeIndexAscending},
		{Path: "/n", Order: azcosmos.CompositeIndexDescending},
	}}
	return shelves(t, definition, numbers())
}

// indexed is a policy that indexes every path, to be added to.
func indexed() *azcosmos.IndexingPolicy {
	return &azcosmos.IndexingPolicy{
		Automatic:     true,
		IndexingMode:  azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
	}
}

func TestFiltersOverAllPartitions(t *testing.T) {
	both := newNumbers(t)
	all := []any{}
	for _, item := range numbers() {
		all = append(all, item)
	}
	for _, one := range []question{
		{name: "no filter", text: "SELECT c.id, c.pk, c.n, c.tie, c.word, c.even, c.list, c['in'] FROM c",
			want: all},
		{name: "range", text: "SELECT VALUE c.n FROM c WHERE c.n >= 30", want: span(30, 40)},
		{name: "conjunction and disjunction",
			text: "SELECT VALUE c.n FROM c WHERE c.n < 5 AND (c.tie = 1 OR c.word = 'w2')",
			want: []any{1, 2}},
		{name: "membership", text: "SELECT VALUE c.n FROM c WHERE c.n IN (3, 33, 333)",
			want: []any{3, 33}},
		{name: "nested path", text: "SELECT VALUE c.n FROM c WHERE c['in'].half = 9.5",
			want: []any{19}},
		{name: "array function",
			text: "SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(c.list, -12)", want: []any{12}},
		{name: "text function",
			text: "SELECT VALUE c.n FROM c WHERE STARTSWITH(c.id, 'i3')", want: span(30, 40)},
		{name: "subquery",
			text: "SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE v FROM v IN c.list WHERE v < -37)",
			want: []any{38, 39}},
		{name: "missing path", text: "SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.none)",
			want: []any{}},
		{name: "join", text: "SELECT c.n, v FROM c JOIN v IN c.list WHERE c.n = 7",
			want: []any{object{"n": 7, "v": 7}, object{"n": 7, "v": -7}}},
		{name: "distinct values", text: "SELECT DISTINCT VALUE c.tie FROM c",
			want: []any{0, 1, 2, 3}},
		{name: "distinct objects", text: "SELECT DISTINCT c.even, c.tie FROM c", want: []any{
			object{"even": true, "tie": 0}, object{"even": false, "tie": 1},
			object{"even": true, "tie": 2}, object{"even": false, "tie": 3}}},
		{name: "groups", text: "SELECT c.tie, COUNT(1) AS many, SUM(c.n) AS sum, MIN(c.id) AS first, " +
			"MAX(c.n) AS most, AVG(c.n) AS mean FROM c GROUP BY c.tie",
			want: []any{
				object{"tie": 0, "many": 10, "sum": 180, "first": "i00", "most": 36, "mean": 18},
				object{"tie": 1, "many": 10, "sum": 190, "first": "i01", "most": 37, "mean": 19},
				object{"tie": 2, "many": 10, "sum": 200, "first": "i02", "most": 38, "mean": 20},
				object{"tie": 3, "many": 10, "sum": 210, "first": "i03", "most": 39, "mean": 21}}},
		{name: "groups of two keys",
			text: "SELECT c.even, c.word, COUNT(1) AS many FROM c WHERE c.n < 3 GROUP BY c.even, c.word",
			want: []any{object{"even": true, "word": "w0", "many": 1},
				object{"even": false, "word": "w1", "many": 1},
				object{"even": true, "word": "w2", "many": 1}}},
	} {
		one.anyOrder = true
		asked(t, both, one)
	}
}

func TestOrdersOverAllPartitions(t *testing.T) {
	both := newNumbers(t)
	words := []any{"w0", "w1", "w2", "w3", "w4", "w5", "w6"}
	byTie := []any{}
	for tie := range 4 {
		byTie = append(byTie, reversed(those(func(n int) bool { return n%4 == tie }))...)
	}
	for _, one := range []question{
		{name: "upwards", text: "SELECT VALUE c.n FROM c ORDER BY c.n", want: span(0, 40)},
		{name: "downwards", text: "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
			want: reversed(span(0, 40))},
		{name: "by what is not selected", text: "SELECT VALUE c.id FROM c WHERE c.n > 37 ORDER BY c.n",
			want: []any{"i38", "i39"}},
		{name: "by a nested path", text: "SELECT VALUE c.n FROM c ORDER BY c['in'].half DESC",
			want: reversed(span(0, 40))},
		{name: "by two keys", text: "SELECT VALUE c.n FROM c ORDER BY c.tie, c.n DESC",
			want: byTie},
		{name: "with equal keys", text: "SELECT VALUE c.tie FROM c ORDER BY c.tie",
			want: slices.Concat(repeated(0), repeated(1), repeated(2), repeated(3))},
		{name: "filtered", text: "SELECT VALUE c.n FROM c WHERE c.word = 'w3' ORDER BY c.n",
			want: those(func(n int) bool { return n%7 == 3 })},
		{name: "top", text: "SELECT TOP 11 VALUE c.n FROM c ORDER BY c.n", want: span(0, 11)},
		{name: "top by parameter", text: "SELECT TOP @top VALUE c.n FROM c ORDER BY c.n DESC",
			with: object{"@top": 3}, want: []any{39, 38, 37}},
		{name: "offset and limit", text: "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 7 LIMIT 10",
			want: span(7, 17)},
		{name: "offset beyond the end",
			text: "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 100 LIMIT 5", want: []any{}},
		{name: "distinct", text: "SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word",
			want: words},
		{name: "distinct downwards with top",
			text: "SELECT DISTINCT TOP 2 VALUE c.word FROM c ORDER BY c.word DESC",
			want: []any{"w6", "w5"}},
		{name: "join", text: "SELECT VALUE v FROM c JOIN v IN c.list WHERE v > 35 ORDER BY c.n",
			want: span(36, 40)},
	} {
		asked(t, both, one)
	}
}

func repeated(value any) []any {
	return slices.Repeat([]any{value}, numbersCount/4)
}

func TestAggregatesOverAllPartitions(t *testing.T) {
	both := newNumbers(t)
	for _, one := range []question{
		{name: "count", text: "SELECT VALUE COUNT(1) FROM c", want: []any{40}},
		{name: "count of what is defined", text: "SELECT VALUE COUNT(c.none) FROM c", want: []any{0}},
		{name: "count of nothing", text: "SELECT VALUE COUNT(1) FROM c WHERE c.n > 99", want: []any{0}},
		{name: "sum", text: "SELECT VALUE SUM(c.n) FROM c", want: []any{780}},
		{name: "mean", text: "SELECT VALUE AVG(c.n) FROM c", want: []any{19.5}},
		{name: "least", text: "SELECT VALUE MIN(c.n) FROM c WHERE c.tie = 3", want: []any{3}},
		{name: "most", text: "SELECT VALUE MAX(c.id) FROM c", want: []any{"i39"}},
		{name: "most of nothing", text: "SELECT VALUE MAX(c.none) FROM c", want: []any{}},
		{name: "several at once",
			text: "SELECT COUNT(1) AS many, SUM(c.n) AS sum, MIN(c.n) AS least FROM c WHERE c.even",
			want: []any{object{"many": 20, "sum": 380, "least": 0}}},
		{name: "over a join", text: "SELECT VALUE SUM(v) FROM c JOIN v IN c.list WHERE v < 0",
			want: []any{-780}},
		{name: "over distinct values",
			text: "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.word FROM c)", want: []any{7}},
	} {
		asked(t, both, one)
	}
}

func TestQueriesWithinAKey(t *testing.T) {
	both := newNumbers(t)
	for _, one := range []question{
		{name: "order", text: "SELECT VALUE c.n FROM c ORDER BY c.n DESC", want: []any{36, 25, 14, 3}},
		{name: "count", text: "SELECT VALUE COUNT(1) FROM c", want: []any{4}},
		{name: "sum", text: "SELECT VALUE SUM(c.n) FROM c", want: []any{78}},
		{name: "groups", text: "SELECT c.even, MAX(c.n) AS most FROM c GROUP BY c.even", want: []any{
			object{"even": false, "most": 25}, object{"even": true, "most": 36}}, anyOrder: true},
		{name: "distinct", text: "SELECT DISTINCT VALUE c.even FROM c ORDER BY c.even",
			want: []any{false, true}},
		{name: "offset", text: "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 2",
			want: []any{14, 25}},
		{name: "filter on another key", text: "SELECT * FROM c WHERE c.pk = 'p4'", want: []any{}},
	} {
		one.within = "p3"
		asked(t, both, one)
	}
}

func TestParametersOfEveryType(t *testing.T) {
	items := []object{
		{"id": "text", "pk": "a", "v": "é\"'"}, {"id": "number", "pk": "b", "v": -1.5},
		{"id": "true", "pk": "c", "v": true}, {"id": "null", "pk": "d", "v": nil},
		{"id": "array", "pk": "e", "v": []any{1, "x"}}, {"id": "object", "pk": "f", "v": object{"x": 1}},
		{"id": "none", "pk": "g"},
	}
	both := shelves(t, keyed("/pk"), items)
	for _, item := range items[:6] {
		asked(t, both, question{
			name: item["id"].(string), text: "SELECT VALUE c.id FROM c WHERE c.v = @v",
			with: object{"@v": item["v"]}, want: []any{item["id"]},
		})
	}
}

func TestOrderOfTypes(t *testing.T) {
	up := []any{nil, false, true, -2, 0.5, 10, "", "A", "a", "é"}
	var items []object
	for n, value := range up {
		// Stored the other way around, so that the order of creation does not help.
		id := fmt.Sprintf("i%d", len(up)-n)
		items = append(items, object{"id": id, "pk": id, "v": value})
	}
	slices.Reverse(items)
	both := shelves(t, keyed("/pk"), items)
	text := "SELECT VALUE c.v FROM c ORDER BY c.v"
	asked(t, both, question{name: "upwards", text: text, want: up})
	asked(t, both, question{name: "downwards", text: text + " DESC", want: reversed(up)})
}

func TestBadQueriesAre400(t *testing.T) {
	c := newContainer(t)
	for _, text := range []string{
		"SELECT", "SELECT * FORM c", "SELECT * FROM c WHERE c.a =", "SELECT none.a FROM c",
		"SELECT NONE(c.a) FROM c",
	} {
		each(t, text, func(t *testing.T) {
			pager := c.NewQueryItemsPager(text, key("p"), nil)
			fails(pager.NextPage(t.Context()))(t, badRequest)
		})
	}
}

// The service refuses a query over partitions whose client says that it must not be one. Our
// server runs it; COMPAT.md lists the difference.
func TestQueryNeedsNoCrossPartitionFlag(t *testing.T) {
	c := newPartitioned(t)
	put(t, c, object{"id": "a", "pk": "p"})
	disabled := false
	options := &azcosmos.QueryOptions{EnableCrossPartitionQuery: &disabled}
	same(t, query(t, c, key(), "SELECT VALUE c.id FROM c", options), []any{"a"})
}
