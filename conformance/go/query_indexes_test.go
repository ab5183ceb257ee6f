package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func vectorsOf(
	dimensions int32, distance azcosmos.VectorDistanceFunction,
) *azcosmos.VectorEmbeddingPolicy {
	return &azcosmos.VectorEmbeddingPolicy{VectorEmbeddings: []azcosmos.VectorEmbedding{{
		Path: "/v", DataType: azcosmos.VectorDataTypeFloat32,
		DistanceFunction: distance, Dimensions: dimensions,
	}}}
}

func english(path string) *azcosmos.FullTextPolicy {
	return &azcosmos.FullTextPolicy{
		DefaultLanguage: "en-US",
		FullTextPaths:   []azcosmos.FullTextPath{{Path: path, Language: "en-US"}},
	}
}

func point(longitude, latitude float64) object {
	return object{"type": "Point", "coordinates": []float64{longitude, latitude}}
}

func TestNearestVectors(t *testing.T) {
	definition := keyed("/id")
	definition.VectorEmbeddingPolicy = vectorsOf(3, azcosmos.VectorDistanceFunctionEuclidean)
	definition.IndexingPolicy = indexed()
	definition.IndexingPolicy.ExcludedPaths = []azcosmos.ExcludedPath{{Path: "/v/*"}}
	definition.IndexingPolicy.VectorIndexes = []azcosmos.VectorIndex{
		{Path: "/v", Type: azcosmos.VectorIndexTypeFlat},
	}
	both := shelves(t, definition, []object{
		{"id": "east", "v": []int{1, 0, 0}}, {"id": "north", "v": []int{0, 1, 0}},
		{"id": "up", "v": []int{0, 0, 1}}, {"id": "northeast", "v": []int{1, 1, 0}},
		{"id": "far", "v": []int{9, 9, 9}},
	})
	nearest := "SELECT TOP @top VALUE c.id FROM c ORDER BY VectorDistance(c.v, @to)"
	for _, one := range []question{
		{name: "three", text: nearest, with: object{"@top": 3, "@to": []float64{1, 0.2, 0}},
			want: []any{"east", "northeast", "north"}},
		{name: "one", text: nearest, with: object{"@top": 1, "@to": []float64{8, 8, 8}},
			want: []any{"far"}},
		{name: "with its distance",
			text: "SELECT TOP 1 c.id, VectorDistance(c.v, [2, 0, 0]) AS away FROM c " +
				"ORDER BY VectorDistance(c.v, [2, 0, 0])",
			want: []any{object{"id": "east", "away": 1}}},
	} {
		asked(t, both, one)
	}
}

func TestFullText(t *testing.T) {
	definition := keyed("/id")
	definition.FullTextPolicy = english("/text")
	definition.IndexingPolicy = indexed()
	definition.IndexingPolicy.FullTextIndexes = []azcosmos.FullTextIndex{{Path: "/text"}}
	both := shelves(t, definition, []object{
		{"id": "a", "text": "The red bicycle is parked near the red barn"},
		{"id": "b", "text": "A blue bicycle and a red scooter stand in the rain by the old river"},
		{"id": "c", "text": "A green tractor in the barn"},
		{"id": "d", "text": "Mountains and rivers without end"},
		{"id": "e"},
	})
	words := func(filter string) string { return "SELECT VALUE c.id FROM c WHERE " + filter }
	ranked := func(top, rank string) string {
		return "SELECT TOP " + top + " VALUE c.id FROM c ORDER BY RANK " + rank
	}
	for _, one := range []question{
		{name: "one word", text: words("FullTextContains(c.text, 'bicycle')"),
			want: []any{"a", "b"}, anyOrder: true},
		{name: "all words", text: words("FullTextContainsAll(c.text, 'red', 'barn')"),
			want: []any{"a"}},
		{name: "any word", text: words("FullTextContainsAny(c.text, 'scooter', 'tractor')"),
			want: []any{"b", "c"}, anyOrder: true},
		{name: "rank of a word", text: ranked("2", "FullTextScore(c.text, 'red')"),
			want: []any{"a", "b"}},
		{name: "rank of two words", text: ranked("1", "FullTextScore(c.text, 'green', 'tractor')"),
			want: []any{"c"}},
	} {
		asked(t, both, one)
	}
}

func TestRanksAreFused(t *testing.T) {
	definition := keyed("/id")
	definition.FullTextPolicy = english("/text")
	definition.VectorEmbeddingPolicy = vectorsOf(2, azcosmos.VectorDistanceFunctionCosine)
	definition.IndexingPolicy = indexed()
	definition.IndexingPolicy.FullTextIndexes = []azcosmos.FullTextIndex{{Path: "/text"}}
	definition.IndexingPolicy.VectorIndexes = []azcosmos.VectorIndex{
		{Path: "/v", Type: azcosmos.VectorIndexTypeFlat},
	}
	both := shelves(t, definition, []object{
		{"id": "both", "text": "red bicycle", "v": []float64{1, 0}},
		{"id": "second", "text": "a bicycle that nobody has seen for years", "v": []float64{1, 0.5}},
		{"id": "neither", "text": "nothing of the kind", "v": []float64{0, 1}},
	})
	asked(t, both, question{
		name: "text and vector",
		text: "SELECT TOP 2 VALUE c.id FROM c " +
			"ORDER BY RANK RRF(FullTextScore(c.text, 'bicycle'), VectorDistance(c.v, [1, 0]))",
		want: []any{"both", "second"},
	})
}

func TestSpatialFilters(t *testing.T) {
	definition := keyed("/id")
	definition.IndexingPolicy = indexed()
	definition.IndexingPolicy.SpatialIndexes = []azcosmos.SpatialIndex{{
		Path: "/at/*", SpatialTypes: []azcosmos.SpatialType{azcosmos.SpatialTypePoint},
	}}
	both := shelves(t, definition, []object{
		{"id": "oslo", "at": point(10.7522, 59.9139)}, {"id": "drammen", "at": point(10.2045, 59.744)},
		{"id": "bergen", "at": point(5.3221, 60.3913)}, {"id": "tromsø", "at": point(18.9553, 69.6492)},
		{"id": "nowhere"},
	})
	ring := [][]float64{{9, 59}, {12, 59}, {12, 61}, {9, 61}, {9, 59}}
	area := object{"type": "Polygon", "coordinates": []any{ring}}
	near := "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, @here) < @metres"
	for _, one := range []question{
		{name: "near", text: near, with: object{"@here": point(10.75, 59.91), "@metres": 1000},
			want: []any{"oslo"}},
		{name: "less near", text: near, with: object{"@here": point(10.75, 59.91), "@metres": 350_000},
			want: []any{"oslo", "drammen", "bergen"}},
		{name: "within", text: "SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, @area)",
			with: object{"@area": area}, want: []any{"oslo", "drammen"}},
	} {
		one.anyOrder = true
		asked(t, both, one)
	}
}
