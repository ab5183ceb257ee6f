package conformance

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestOnePagerReadsToTheEnd(t *testing.T) {
	for _, c := range newNumbers(t) {
		options := &azcosmos.QueryOptions{PageSizeHint: 7}
		found := query(t, c, key(), "SELECT VALUE c.n FROM c ORDER BY c.n", options)
		same(t, found, span(0, 40))
	}
}

func TestPageOfAnySizeHoldsAllRows(t *testing.T) {
	for _, c := range newNumbers(t) {
		options := &azcosmos.QueryOptions{PageSizeHint: -1}
		pager := c.NewQueryItemsPager("SELECT * FROM c", key(), options)
		same(t, len(must(pager.NextPage(t.Context()))(t).Items), 40)
		if pager.More() {
			t.Error("there is said to be more")
		}
	}
}

func firstPage(
	t *testing.T, c *azcosmos.ContainerClient, text string, size int32,
) azcosmos.QueryItemsResponse {
	t.Helper()
	options := &azcosmos.QueryOptions{PageSizeHint: size}
	return must(c.NewQueryItemsPager(text, key(), options).NextPage(t.Context()))(t)
}

func TestContinuationServesAnotherClient(t *testing.T) {
	database := newDatabase(t)
	c := create(t, database, keyed("/pk"), threePartitions)
	for _, item := range numbers() {
		put(t, c, item)
	}
	text := "SELECT VALUE c.n FROM c ORDER BY c.n"
	token := firstPage(t, c, text, 5).ContinuationToken
	options := &azcosmos.QueryOptions{ContinuationToken: token}
	same(t, query(t, reopened(t, database, c), key(), text, options), span(5, 40))
}

func TestContinuationOfAnotherQueryIs400(t *testing.T) {
	for _, c := range newNumbers(t) {
		token := firstPage(t, c, "SELECT VALUE c.n FROM c ORDER BY c.n", 5).ContinuationToken
		options := &azcosmos.QueryOptions{ContinuationToken: token}
		pager := c.NewQueryItemsPager("SELECT VALUE c.n FROM c ORDER BY c.tie", key(), options)
		fails(pager.NextPage(t.Context()))(t, badRequest)
	}
}

func TestContinuationThatIsNoneIs400(t *testing.T) {
	c, nonsense := newContainer(t), "nonsense"
	options := &azcosmos.QueryOptions{ContinuationToken: &nonsense}
	pager := c.NewQueryItemsPager("SELECT * FROM c", key(), options)
	fails(pager.NextPage(t.Context()))(t, badRequest)
}

func TestPagesSeeWhatIsWrittenBetweenThem(t *testing.T) {
	c := newPartitioned(t)
	for n := range 10 {
		put(t, c, object{"id": fmt.Sprint(n), "pk": fmt.Sprintf("p%d", n), "n": n})
	}
	text := "SELECT VALUE c.n FROM c ORDER BY c.n"
	first := firstPage(t, c, text, 4)
	same(t, decodeAll(t, first.Items), span(0, 4))
	must(c.DeleteItem(t.Context(), key("p5"), "5", nil))(t)
	put(t, c, object{"id": "before", "pk": "p1", "n": -1})
	put(t, c, object{"id": "after", "pk": "p1", "n": 20})
	options := &azcosmos.QueryOptions{ContinuationToken: first.ContinuationToken}
	same(t, query(t, c, key(), text, options), []any{4, 6, 7, 8, 9, 20})
}

func TestQueryMetricsCountTheRows(t *testing.T) {
	for _, c := range newNumbers(t) {
		page := firstPage(t, c, "SELECT VALUE c.n FROM c WHERE c.n < 9", -1)
		if page.QueryMetrics == nil {
			t.Fatal("there are no metrics")
		}
		metrics := map[string]float64{}
		for _, part := range strings.Split(*page.QueryMetrics, ";") {
			name, value, _ := strings.Cut(part, "=")
			metrics[name] = must(strconv.ParseFloat(value, 64))(t)
		}
		same(t, metrics["outputDocumentCount"], 9)
		_, isTold := metrics["retrievedDocumentCount"]
		if !isTold || metrics["totalExecutionTimeInMs"] <= 0 {
			t.Errorf("the metrics are %s", *page.QueryMetrics)
		}
	}
}

func TestIndexMetricsComeOnlyWhenAskedFor(t *testing.T) {
	for _, c := range newNumbers(t) {
		text := "SELECT VALUE c.n FROM c WHERE c.n < 9"
		if silent := firstPage(t, c, text, -1); silent.IndexMetrics != nil {
			t.Errorf("metrics came unasked: %s", *silent.IndexMetrics)
		}
		options := &azcosmos.QueryOptions{PopulateIndexMetrics: true}
		page := must(c.NewQueryItemsPager(text, key(), options).NextPage(t.Context()))(t)
		if page.IndexMetrics == nil {
			t.Fatal("there are no metrics")
		}
		// The SDK hands the header on as it is: JSON in base64.
		metrics := decode(t, must(base64.StdEncoding.DecodeString(*page.IndexMetrics))(t)).(object)
		used := metrics["UtilizedSingleIndexes"].([]any)
		same(t, len(used), 1)
		same(t, used[0].(object)["IndexSpec"], "/n/?")
	}
}
