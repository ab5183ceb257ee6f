package conformance

import (
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestDatabaseIsCreatedReadAndDeleted(t *testing.T) {
	skip(t)
	client, ctx := connect(t, nil), t.Context()
	definition := azcosmos.DatabaseProperties{ID: unique("db")}
	created := must(client.CreateDatabase(ctx, definition, nil))(t)
	expectStatus(t, created.Response, 201)
	database := must(client.NewDatabase(definition.ID))(t)
	found := must(database.Read(ctx, nil))(t)
	same(t, found.DatabaseProperties, created.DatabaseProperties)
	properties := found.DatabaseProperties
	if properties.ETag == nil || properties.SelfLink == "" || properties.LastModified.IsZero() {
		t.Errorf("a system property is missing: %+v", properties)
	}
	fails(client.CreateDatabase(ctx, definition, nil))(t, conflict)
	expectStatus(t, must(database.Delete(ctx, nil))(t).Response, 204)
	fails(database.Read(ctx, nil))(t, notFound)
}

func databases(t *testing.T, client *azcosmos.Client, text string, id string) []string {
	t.Helper()
	options := azcosmos.QueryDatabasesOptions{}
	if id != "" {
		options.QueryParameters = []azcosmos.QueryParameter{{Name: "@id", Value: id}}
	}
	found := []string{}
	for pager := client.NewQueryDatabasesPager(text, &options); pager.More(); {
		for _, one := range must(pager.NextPage(t.Context()))(t).Databases {
			found = append(found, one.ID)
		}
	}
	return found
}

func TestDatabasesAreQueried(t *testing.T) {
	first, second := newDatabase(t), newDatabase(t)
	client := connect(t, nil)
	all := databases(t, client, "SELECT * FROM d", "")
	if !slices.Contains(all, first.ID()) || !slices.Contains(all, second.ID()) {
		t.Errorf("%s or %s is not in %v", first.ID(), second.ID(), all)
	}
	named := databases(t, client, "SELECT * FROM d WHERE d.id = @id", second.ID())
	same(t, named, []string{second.ID()})
}

func TestContainersAreQueried(t *testing.T) {
	database := newDatabase(t)
	first := create(t, database, keyed("/a"), 0).ID()
	second := create(t, database, keyed("/b"), 0).ID()
	found := func(text string) []any {
		ids := []any{}
		options := azcosmos.QueryContainersOptions{
			QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: second}},
		}
		for pager := database.NewQueryContainersPager(text, &options); pager.More(); {
			for _, one := range must(pager.NextPage(t.Context()))(t).Containers {
				ids = append(ids, one.ID)
			}
		}
		return ids
	}
	sameInAnyOrder(t, found("SELECT * FROM c"), []any{first, second})
	same(t, found("SELECT * FROM c WHERE c.id = @id"), []any{second})
}

func TestContainerReturnsItsDefinition(t *testing.T) {
	database := newDatabase(t)
	definition := keyed("/pk")
	definition.PartitionKeyDefinition.Kind = azcosmos.PartitionKeyKindHash
	definition.DefaultTimeToLive = to.Ptr[int32](3600)
	definition.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{
		UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/mail"}}, {Paths: []string{"/a", "/b/c"}}},
	}
	definition.IndexingPolicy = &azcosmos.IndexingPolicy{
		Automatic:     true,
		IndexingMode:  azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/x/?"}, {Path: "/v/*"}},
		SpatialIndexes: []azcosmos.SpatialIndex{{
			Path:         "/at/*",
			SpatialTypes: []azcosmos.SpatialType{azcosmos.SpatialTypePoint, azcosmos.SpatialTypePolygon},
		}},
		CompositeIndexes: [][]azcosmos.CompositeIndex{{
			{Path: "/a", Order: azcosmos.CompositeIndexAscending},
			{Path: "/b", Order: azcosmos.CompositeIndexDescending},
		}},
		VectorIndexes:   []azcosmos.VectorIndex{{Path: "/v", Type: azcosmos.VectorIndexTypeFlat}},
		FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
	}
	definition.VectorEmbeddingPolicy = vectorsOf(3, azcosmos.VectorDistanceFunctionCosine)
	definition.FullTextPolicy = english("/text")
	created := must(database.CreateContainer(t.Context(), definition, nil))(t)
	expectStatus(t, created.Response, 201)
	c := must(database.NewContainer(definition.ID))(t)
	found := *must(c.Read(t.Context(), nil))(t).ContainerProperties

	same(t, found, created.ContainerProperties)
	same(t, found.PartitionKeyDefinition, definition.PartitionKeyDefinition)
	same(t, found.DefaultTimeToLive, 3600)
	same(t, found.UniqueKeyPolicy, definition.UniqueKeyPolicy)
	same(t, found.VectorEmbeddingPolicy, definition.VectorEmbeddingPolicy)
	same(t, found.FullTextPolicy, definition.FullTextPolicy)
	policy := *found.IndexingPolicy
	same(t, policy.IncludedPaths, definition.IndexingPolicy.IncludedPaths)
	for _, excluded := range definition.IndexingPolicy.ExcludedPaths {
		if !slices.Contains(policy.ExcludedPaths, excluded) {
			t.Errorf("%s is not excluded: %v", excluded.Path, policy.ExcludedPaths)
		}
	}
	same(t, policy.SpatialIndexes, definition.IndexingPolicy.SpatialIndexes)
	same(t, policy.CompositeIndexes, definition.IndexingPolicy.CompositeIndexes)
	same(t, policy.VectorIndexes, definition.IndexingPolicy.VectorIndexes)
	same(t, policy.FullTextIndexes, definition.IndexingPolicy.FullTextIndexes)
}

func TestContainerHasDefaultPolicies(t *testing.T) {
	c := newContainer(t)
	found := must(c.Read(t.Context(), nil))(t).ContainerProperties
	same(t, found.PartitionKeyDefinition.Kind, "Hash")
	if !found.IndexingPolicy.Automatic || len(found.IndexingPolicy.IncludedPaths) != 1 {
		t.Errorf("the policy is %+v", found.IndexingPolicy)
	}
	same(t, found.ConflictResolutionPolicy.Mode, "LastWriterWins")
	if found.ETag == nil || found.SelfLink == "" || found.ResourceID == "" {
		t.Errorf("a system property is missing: %+v", found)
	}
}

func TestContainerTellsItsQuotaWhenAsked(t *testing.T) {
	c := newContainer(t)
	found := must(c.Read(t.Context(), &azcosmos.ReadContainerOptions{PopulateQuotaInfo: true}))(t)
	for _, name := range []string{"x-ms-resource-quota", "x-ms-resource-usage"} {
		if found.RawResponse.Header.Get(name) == "" {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestContainerIsReplaced(t *testing.T) {
	c, ctx := newContainer(t), t.Context()
	changed := *must(c.Read(ctx, nil))(t).ContainerProperties
	changed.DefaultTimeToLive = to.Ptr[int32](-1)
	changed.IndexingPolicy.ExcludedPaths = append(
		changed.IndexingPolicy.ExcludedPaths, azcosmos.ExcludedPath{Path: "/secret/*"})
	must(c.Replace(ctx, changed, nil))(t)
	found := must(c.Read(ctx, nil))(t).ContainerProperties
	same(t, found.DefaultTimeToLive, -1)
	same(t, found.IndexingPolicy, changed.IndexingPolicy)
	changed.PartitionKeyDefinition.Paths = []string{"/other"}
	fails(c.Replace(ctx, changed, nil))(t, badRequest)
}

func TestContainerNamesAreTakenUntilTheyAreDeleted(t *testing.T) {
	database := newDatabase(t)
	definition := keyed("/pk")
	c := create(t, database, definition, 0)
	put(t, c, object{"id": "a", "pk": "p"})
	fails(database.CreateContainer(t.Context(), definition, nil))(t, conflict)
	expectStatus(t, must(c.Delete(t.Context(), nil))(t).Response, 204)
	fails(c.Read(t.Context(), nil))(t, notFound)
	again := create(t, database, definition, 0)
	fails(again.ReadItem(t.Context(), key("p"), "a", nil))(t, notFound)
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	database := newDatabase(t)
	for _, one := range []struct {
		name   string
		change func(definition *azcosmos.ContainerProperties)
	}{
		{"no key", func(d *azcosmos.ContainerProperties) {
			d.PartitionKeyDefinition.Paths = []string{}
		}},
		{"key without a slash", func(d *azcosmos.ContainerProperties) {
			d.PartitionKeyDefinition.Paths = []string{"pk"}
		}},
		{"time to live of zero", func(d *azcosmos.ContainerProperties) {
			d.DefaultTimeToLive = to.Ptr[int32](0)
		}},
		{"slash in the name", func(d *azcosmos.ContainerProperties) { d.ID = "a/b" }},
	} {
		each(t, one.name, func(t *testing.T) {
			definition := keyed("/pk")
			one.change(&definition)
			fails(database.CreateContainer(t.Context(), definition, nil))(t, badRequest)
		})
	}
}

func TestFeedRangesCoverTheContainer(t *testing.T) {
	one := must(newContainer(t).ReadFeedRanges(t.Context(), nil))(t)
	same(t, one, []azcosmos.FeedRange{whole})
	three := must(newPartitioned(t).ReadFeedRanges(t.Context(), nil))(t)
	if len(three) != 3 {
		t.Fatalf("the ranges are %v", three)
	}
	bounds := []string{three[0].MinInclusive}
	for n, each := range three {
		same(t, each.MinInclusive, bounds[n])
		bounds = append(bounds, each.MaxExclusive)
	}
	same(t, []string{bounds[0], bounds[3]}, []string{"", "FF"})
}

func TestConnectionStringOpensAClient(t *testing.T) {
	database := newDatabase(t)
	text := "AccountEndpoint=" + endpoint + "/;AccountKey=" + accountKey + ";"
	client := must(azcosmos.NewClientFromConnectionString(text, nil))(t)
	t.Cleanup(client.Close)
	must(must(client.NewDatabase(database.ID()))(t).Read(t.Context(), nil))(t)
}

func TestWrongAccountKeyIs401(t *testing.T) {
	database := newDatabase(t)
	credential := must(azcosmos.NewKeyCredential("d3Jvbmc="))(t)
	client := must(azcosmos.NewClientWithKey(endpoint, credential, nil))(t)
	t.Cleanup(client.Close)
	fails(must(client.NewDatabase(database.ID()))(t).Read(t.Context(), nil))(t, unauthorized)
}
