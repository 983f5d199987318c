package bench

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
)

// changesPolicy has every write of anything written down, with the object that it left. Leases
// of elections do not count as writes anywhere.
const changesPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  resources: [{group: coordination.k8s.io}]
  namespaces: [kube-system]
- level: RequestResponse
  verbs: [create, update, patch, delete]
- level: None
`

// LogChanges has the API server of a case write down what every write changes, into a file of
// a directory. It slows the API server down, so that times and processor time are too high.
func (c *Case) LogChanges(dir string) error {
	log, flags, err := newAudit(dir, changesPolicy)
	c.changes = &changes{audit: log, flags: flags, last: map[string]*unstructured.Unstructured{}}
	return err
}

// Change is what one write of an operator changed, with whatever value.
type Change struct {
	// Writer is the operator, or the user agent of what is none.
	Writer string
	// Verb and Kind of the object.
	Verb, Kind string
	// Fields that differ from the version before, as paths with commas between; empty if none
	// do. Conditions are named by their type and what differs in them, managed fields and the
	// numbers of versions are left out.
	Fields string
}

// changes reads what writes change from the API server's audit log.
type changes struct {
	audit

	// flags of an API server that writes the log.
	flags map[string]string
	// read is how much of the log was read, last the version of each object that is known.
	read int
	last map[string]*unstructured.Unstructured
}

// next returns what was written since it was last asked, and how often. A nil log has nothing.
func (c *changes) next() (map[Change]int, error) {
	out := map[Change]int{}
	if c == nil {
		return out, nil
	}
	all, read, err := c.entries(c.read)
	if err != nil {
		return nil, err
	}
	c.read = read
	all = slices.DeleteFunc(all, func(e audited) bool { return !e.changes() })
	// Answers are written down in another order than versions are made.
	slices.SortStableFunc(all, func(a, b audited) int { return cmp.Compare(a.version(), b.version()) })
	for _, e := range all {
		out[c.change(e)]++
	}
	return out, nil
}

// changes reports whether an object was written: tries and refusals change nothing, and the
// answer to an eviction or a token is no object of the cluster.
func (e audited) changes() bool {
	if e.ObjectRef == nil || e.ResponseStatus.Code >= 300 || strings.Contains(e.RequestURI, "dryRun=All") {
		return false
	}
	return e.ObjectRef.Subresource == "" || e.ObjectRef.Subresource == "status"
}

// version of the object that the write left; 0 if the answer has none.
func (e audited) version() int {
	object := unstructured.Unstructured{Object: e.ResponseObject}
	n, err := strconv.Atoi(object.GetResourceVersion())
	if err != nil {
		return 0
	}
	return n
}

// change compares what a write left with the version before.
func (c *changes) change(e audited) Change {
	object := &unstructured.Unstructured{Object: e.ResponseObject}
	out := Change{Writer: writerOf(e.UserAgent), Verb: e.Verb, Kind: cmp.Or(object.GetKind(), e.ObjectRef.Resource)}
	if e.ObjectRef.Subresource != "" {
		out.Verb += " " + e.ObjectRef.Subresource
	}
	if out.Kind == "Status" { // of an object that is gone
		out.Kind = e.ObjectRef.Resource
		return out
	}
	key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
	if before := c.last[key]; before != nil && before.GetUID() == object.GetUID() && e.Verb != apirequest.Create {
		fields := map[string]bool{}
		recordDifferences("", before.Object, object.Object, fields)
		out.Fields = strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	}
	c.last[key] = object
	return out
}

// writerOf is the operator of a user agent; the user agent up to its version if it is none.
func writerOf(agent string) string {
	if operator, ours := strings.CutPrefix(agent, "tidb-groups/"); ours {
		return operator
	}
	name, _, _ := strings.Cut(agent, "/")
	return name
}

// recordDifferences notes the paths of what differs between two values.
func recordDifferences(path string, before, after any, into map[string]bool) {
	switch path {
	case ".metadata.managedFields", ".metadata.resourceVersion", ".metadata.generation":
		return
	}
	if reflect.DeepEqual(before, after) {
		return
	}
	b, wasMap := before.(map[string]any)
	a, isMap := after.(map[string]any)
	if wasMap || isMap {
		for _, key := range slices.Sorted(maps.Keys(mergeMaps(b, a))) {
			recordDifferences(path+"."+key, b[key], a[key], into)
		}
		return
	}
	if path == ".status.conditions" {
		b, a := byType(before), byType(after)
		for _, name := range slices.Sorted(maps.Keys(mergeMaps(b, a))) {
			recordCondition(name, b[name], a[name], into)
		}
		return
	}
	if b, a := listItems(before), listItems(after); len(b) == len(a) && len(a) > 0 {
		for i := range a {
			recordDifferences(path+"[]", b[i], a[i], into)
		}
		return
	}
	into[strings.TrimPrefix(path, ".")] = true
}

func listItems(value any) []any {
	out, _ := value.([]any)
	return out
}

// recordCondition notes the most telling part that differs in a condition.
func recordCondition(name string, before, after any, into map[string]bool) {
	b, _ := before.(map[string]any)
	a, _ := after.(map[string]any)
	for _, part := range []string{"status", "reason", "message", "observedGeneration", "lastTransitionTime"} {
		if !reflect.DeepEqual(b[part], a[part]) {
			into[fmt.Sprintf("%s.%s", name, part)] = true
			return
		}
	}
}

func byType(conditions any) map[string]any {
	out := map[string]any{}
	for _, one := range listItems(conditions) {
		if m, ok := one.(map[string]any); ok {
			out[fmt.Sprint(m["type"])] = m
		}
	}
	return out
}

func mergeMaps(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}

// MostOften sorts changes by writer and kind, the most frequent first.
func MostOften(all map[Change]int) []Change {
	return slices.SortedFunc(maps.Keys(all), func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.Kind, b.Kind), cmp.Compare(all[b], all[a]), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Fields, b.Fields))
	})
}
