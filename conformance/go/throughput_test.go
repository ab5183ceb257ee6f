package conformance

import (
	"context"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// provisioned is a container or a database, whose throughput is read and replaced alike.
type provisioned interface {
	ReadThroughput(
		context.Context, *azcosmos.ThroughputOptions,
	) (azcosmos.ThroughputResponse, error)
	ReplaceThroughput(
		context.Context, azcosmos.ThroughputProperties, *azcosmos.ThroughputOptions,
	) (azcosmos.ThroughputResponse, error)
}

func expectManual(t *testing.T, of provisioned, want int32) {
	t.Helper()
	found := must(of.ReadThroughput(t.Context(), nil))(t)
	ru, isManual := found.ThroughputProperties.ManualThroughput()
	_, isAutoscale := found.ThroughputProperties.AutoscaleMaxThroughput()
	same(t, []any{ru, isManual, isAutoscale}, []any{want, true, false})
	if found.MinThroughput == nil || *found.MinThroughput <= 0 {
		t.Error("the least throughput is not told")
	}
	if found.IsReplacePending {
		t.Error("a replacement is under way")
	}
}

func expectAutoscale(t *testing.T, of provisioned, want int32) {
	t.Helper()
	found := must(of.ReadThroughput(t.Context(), nil))(t).ThroughputProperties
	most, isAutoscale := found.AutoscaleMaxThroughput()
	same(t, []any{most, isAutoscale}, []any{want, true})
}

func TestManualThroughputOfAContainerIsReadAndReplaced(t *testing.T) {
	c := create(t, newDatabase(t), keyed("/pk"), 500)
	expectManual(t, c, 500)
	raised := azcosmos.NewManualThroughputProperties(900)
	replaced := must(c.ReplaceThroughput(t.Context(), raised, nil))(t)
	ru, _ := replaced.ThroughputProperties.ManualThroughput()
	same(t, ru, 900)
	expectManual(t, c, 900)
}

func TestAutoscaleThroughputOfAContainerIsReadAndReplaced(t *testing.T) {
	database, definition := newDatabase(t), keyed("/pk")
	options := &azcosmos.CreateContainerOptions{
		ThroughputProperties: to.Ptr(azcosmos.NewAutoscaleThroughputProperties(4000)),
	}
	must(database.CreateContainer(t.Context(), definition, options))(t)
	c := must(database.NewContainer(definition.ID))(t)
	expectAutoscale(t, c, 4000)
	raised := azcosmos.NewAutoscaleThroughputProperties(6000)
	must(c.ReplaceThroughput(t.Context(), raised, nil))(t)
	expectAutoscale(t, c, 6000)
}

func TestManualThroughputOfADatabaseIsReadAndReplaced(t *testing.T) {
	database := newDatabaseWith(t, to.Ptr(azcosmos.NewManualThroughputProperties(500)))
	expectManual(t, database, 500)
	raised := azcosmos.NewManualThroughputProperties(600)
	must(database.ReplaceThroughput(t.Context(), raised, nil))(t)
	expectManual(t, database, 600)
}

func TestAutoscaleThroughputOfADatabaseIsReadAndReplaced(t *testing.T) {
	database := newDatabaseWith(t, to.Ptr(azcosmos.NewAutoscaleThroughputProperties(1000)))
	expectAutoscale(t, database, 1000)
	raised := azcosmos.NewAutoscaleThroughputProperties(2000)
	must(database.ReplaceThroughput(t.Context(), raised, nil))(t)
	expectAutoscale(t, database, 2000)
}

// The SDK itself makes the 404 out of an empty answer to its query for offers.
func TestThroughputThatIsNotThereIs404(t *testing.T) {
	fails(newDatabase(t).ReadThroughput(t.Context(), nil))(t, notFound)
	shared := newDatabaseWith(t, to.Ptr(azcosmos.NewManualThroughputProperties(400)))
	fails(create(t, shared, keyed("/pk"), 0).ReadThroughput(t.Context(), nil))(t, notFound)
}

func TestImpossibleThroughputIs400(t *testing.T) {
	database := newDatabase(t)
	for _, throughput := range []azcosmos.ThroughputProperties{
		azcosmos.NewManualThroughputProperties(100),
		azcosmos.NewManualThroughputProperties(450),
		azcosmos.NewAutoscaleThroughputProperties(1500),
	} {
		options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
		fails(database.CreateContainer(t.Context(), keyed("/pk"), options))(t, badRequest)
	}
}
