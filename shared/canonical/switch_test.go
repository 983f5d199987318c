package canonical

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// same are fields of groups that mean the same when they are empty and when they are left out.
func same() []string {
	return []string{"disruption", "failover", "initialization", "peerService", "placement", "readiness", "service", "shutdown"}
}

// emptied adds the fields below a type that can be there and empty.
func emptied(t *testing.T, of reflect.Type, field string, seen map[reflect.Type]bool, into map[string]bool) {
	t.Helper()
	api := reflect.TypeFor[v1alpha1.PDGroup]().PkgPath()
	switch of.Kind() {
	case reflect.Pointer:
		if of.Elem().Kind() == reflect.Struct && of.Elem().PkgPath() == api {
			text, err := json.Marshal(reflect.New(of.Elem()).Interface())
			require.NoError(t, err)
			if string(text) == "{}" {
				into[field] = true
			}
		}
		emptied(t, of.Elem(), field, seen, into)
	case reflect.Slice, reflect.Map:
		emptied(t, of.Elem(), field, seen, into)
	case reflect.Struct:
		if of.PkgPath() != api || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			emptied(t, of.Field(i).Type, name, seen, into)
		}
	default:
	}
}

// DB-13: what a field switches on by being there reaches the group, even if it says no more.
func TestEmptyFieldsOfGroupsAreSwitchesOrMeanNothing(t *testing.T) {
	found, seen := map[string]bool{}, map[reflect.Type]bool{}
	for _, c := range v1alpha1.ComponentTable() {
		emptied(t, reflect.TypeOf(c.New()), c.Kind, seen, found)
	}
	require.Contains(t, found, "sessionToken")
	for field := range found {
		assert.NotEqual(t, isSwitch(field), slices.Contains(same(), field), "an empty %s is applied, or means the same as none", field)
	}
	pruned, _ := pruneEmpty(map[string]any{"spec": map[string]any{"sessionToken": map[string]any{}, "disruption": map[string]any{}}})
	assert.Equal(t, map[string]any{"spec": map[string]any{"sessionToken": map[string]any{}}}, pruned)
}
