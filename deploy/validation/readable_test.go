package validation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// P10: an object that Go cannot decode keeps an operator from reading all others of its kind.
func TestWhatTheOperatorsCannotReadIsRefused(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	fields := []struct {
		kind   string
		list   client.ObjectList
		change func(value string) change
		bad    []string
		good   []string
	}{
		{v1alpha1.KindLogBackup, &v1alpha1.LogBackupList{}, func(v string) change { return change{"spec.truncateBefore", v} }, unreadableTimes(), readableTimes()},
		{v1alpha1.KindRestore, &v1alpha1.RestoreList{}, func(v string) change {
			return change{"spec", "{tidbGroup: {name: a}, from: {logBackup: {name: b}}, pointInTime: " + v + "}"}
		}, unreadableTimes(), readableTimes()},
		{cluster, &v1alpha1.TidbClusterList{}, func(v string) change {
			return change{"spec.bootstrapFrom", "{logBackup: {name: b}, pointInTime: " + v + "}"}
		}, unreadableTimes(), readableTimes()},
		{tikv, &v1alpha1.TiKVGroupList{}, func(v string) change { return change{"spec.resources", "{limits: {cpu: " + v + "}}"} }, unreadableQuantities(), readableQuantities()},
		{cluster, &v1alpha1.TidbClusterList{}, func(v string) change { return change{"spec.tidb[0].resources", "{requests: {memory: " + v + "}}"} }, unreadableQuantities(), readableQuantities()},
		{inst, &v1alpha1.InstanceList{}, func(v string) change {
			return change{"spec.volumeClaimTemplates", "[{name: data, storage: " + v + "}]"}
		}, unreadableQuantities(), readableQuantities()},
	}
	n := 0
	create := func(kind string, changes ...change) error {
		n++
		return c.Create(t.Context(), apply(t, valid(t, kind, namespace), append(changes, change{"metadata.name", fmt.Sprintf("n%d", n)})...))
	}
	for _, f := range fields {
		for _, value := range f.bad {
			assert.True(t, apierrors.IsInvalid(create(f.kind, f.change(value))), "%s %v", f.kind, f.change(value))
		}
		for _, value := range f.good {
			require.NoError(t, create(f.kind, f.change(value)), "%s %v", f.kind, f.change(value))
		}
		require.NoError(t, c.List(t.Context(), f.list, client.InNamespace(namespace)))
	}
}

// Times that are date-times to the API server, but for the last.
func unreadableTimes() []string {
	return []string{"'2026-01-02t03:04:05Z'", "'2026-01-02T03:04:05z'", "'2026-01-02T03:04:05,5Z'", "'2026-01-02T03:04:05x5Z'", "'2026-01-02T03:04:05+99:99'", "'2026-02-30T03:04:05Z'"}
}

func readableTimes() []string {
	return []string{"'2026-01-02T03:04:05Z'", "'2026-01-02T03:04:05.123Z'", "'2026-01-02T03:04:05+05:30'", "'2026-01-02T03:04:05.5-11:00'"}
}

// Quantities that Go cannot read, or not calculate with in any time.
func unreadableQuantities() []string {
	return []string{"'1e1.5'", "'1e.5'", "'1e99999999999999999999'", "'1e999999999'", "'1e-999999999'"}
}

func readableQuantities() []string {
	return []string{"1", "'1'", "500m", "'1.5'", "2Gi", "1E", "'1e3'", "'1E-2'", "'12e+6'"}
}
