package invariants_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// condition is one entry of status.conditions, sound unless changed.
func condition(conditionType, status, reason string, changes ...func(map[string]any)) any {
	entry := map[string]any{
		"type": conditionType, "status": status, "reason": reason, "message": "a message",
		"observedGeneration": int64(3), "lastTransitionTime": "2026-01-02T03:04:05Z",
	}
	for _, change := range changes {
		change(entry)
	}
	return entry
}

func with(field string, value any) func(map[string]any) {
	return func(entry map[string]any) { entry[field] = value }
}

// object is a PDGroup of generation 3 with the given conditions.
func object(conditions ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "groups.tidb.dev/v1alpha1", "kind": "PDGroup",
		"metadata": map[string]any{"namespace": "default", "name": "basic-pd", "generation": int64(3)},
		"status":   map[string]any{"conditions": conditions},
	}}
}

func instance(conditions ...any) *unstructured.Unstructured {
	obj := object(conditions...)
	obj.SetKind("Instance")
	return obj
}

// counted makes an object one of a kind that wants, has and counts as ready so
// many Instances.
func counted(obj *unstructured.Unstructured, kind string, want, have, ready int64) *unstructured.Unstructured {
	obj.SetKind(kind)
	obj.Object["spec"] = map[string]any{"replicas": want}
	for field, n := range map[string]int64{"replicas": have, "readyReplicas": ready} {
		if status, ok := obj.Object["status"].(map[string]any); ok {
			status[field] = n
		}
	}
	return obj
}

func TestCheck(t *testing.T) {
	ready := condition("Ready", "True", "Ready")
	upToDate := condition("UpToDate", "True", "UpToDate")
	notReady := condition("Ready", "False", "Bootstrapping")
	notUpToDate := condition("UpToDate", "False", "Creating")
	reconciling := condition("Reconciling", "True", "Creating")
	stalled := condition("Stalled", "True", "InvalidSpec")

	stranger := object(condition("Whatever", "Maybe", ""))
	stranger.SetAPIVersion("apps/v1")
	unseen := object()
	unseen.Object["status"] = map[string]any{}
	listless := object()
	listless.Object["status"] = map[string]any{"conditions": "none"}

	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want []string // a piece of each complaint
	}{
		"a converged object is fine":                    {object(ready, upToDate), nil},
		"an object at work that says so is fine":        {object(notReady, notUpToDate, reconciling), nil},
		"a stalled object that is not ready is fine":    {object(notReady, notUpToDate, stalled), nil},
		"a paused object is fine":                       {object(ready, upToDate, condition("Paused", "True", "Paused")), nil},
		"an object of another group is not judged":      {stranger, nil},
		"an object that no operator has seen is fine":   {unseen, nil},
		"conditions of an older generation are fine":    {object(ready, condition("UpToDate", "True", "UpToDate", with("observedGeneration", int64(1)))), nil},
		"an Instance that only its group knows is fine": {instance(condition("Drained", "False", "NotDrained")), nil},
		"Reconciling and Stalled exclude each other":    {object(notReady, notUpToDate, reconciling, stalled), []string{"Reconciling and Stalled are both True"}},
		"a group that serves may be stalled":            {object(ready, notUpToDate, stalled), nil},
		"Reconciling is absent rather than False":       {object(ready, upToDate, condition("Reconciling", "False", "Creating")), []string{"Reconciling is False, but may only be present when True"}},
		"Stalled is absent rather than Unknown":         {object(ready, upToDate, condition("Stalled", "Unknown", "InvalidSpec")), []string{"Stalled is Unknown"}},
		"Paused is absent rather than False":            {object(ready, upToDate, condition("Paused", "False", "Paused")), []string{"Paused is False"}},
		"a generation is observed":                      {object(ready, condition("UpToDate", "True", "UpToDate", with("observedGeneration", int64(0)))), []string{"UpToDate has no observedGeneration"}},
		"what the database says has no generation":      {instance(condition("Drained", "False", "NotDrained", with("observedGeneration", nil))), nil},
		"no generation is observed before it exists":    {object(ready, condition("UpToDate", "True", "UpToDate", with("observedGeneration", int64(4)))), []string{"observedGeneration 4, but the object's generation is only 3"}},
		"a reason is there":                             {object(ready, condition("UpToDate", "True", "")), []string{`reason ""`, "not one of its documented"}},
		"a reason is one CamelCase word":                {object(ready, condition("UpToDate", "True", "up to date")), []string{`reason "up to date"`, "not one of its documented"}},
		"a reason is documented":                        {object(ready, condition("UpToDate", "True", "Whatever")), []string{"reason Whatever, which is not one of its documented reasons"}},
		"a message is there":                            {object(ready, condition("UpToDate", "True", "UpToDate", with("message", " "))), []string{"UpToDate has no message"}},
		"a message is one line":                         {object(ready, condition("UpToDate", "True", "UpToDate", with("message", "a\nb"))), []string{"several lines"}},
		"a transition has a time":                       {object(ready, condition("UpToDate", "True", "UpToDate", with("lastTransitionTime", nil))), []string{"no lastTransitionTime"}},
		"a status is one of three":                      {object(ready, upToDate, condition("QuorumHealthy", "Maybe", "QuorumHealthy")), []string{`status "Maybe"`}},
		"a condition is there once":                     {object(ready, ready, upToDate), []string{"Ready is there twice"}},
		"a condition belongs to the kind":               {object(ready, upToDate, condition("PodReady", "True", "PodReady")), []string{"PodReady is not a condition of this kind"}},
		"Ready is always there":                         {object(notUpToDate, reconciling), []string{"Ready is missing"}},
		"UpToDate is always there":                      {object(ready, reconciling), []string{"UpToDate is missing"}},
		"an unconverged object says why":                {object(condition("Ready", "False", "Creating", with("message", "")), upToDate), []string{"no message", "no condition says why"}},
		"Ready needs its parts":                         {object(ready, upToDate, condition("QuorumHealthy", "False", "QuorumLost")), []string{"Ready is True although QuorumHealthy is False"}},
		"Ready outlasts an unknown part":                {object(ready, upToDate, condition("QuorumHealthy", "Unknown", "PDUnreachable")), nil},
		"an Instance is not Ready without its pod":      {instance(ready, upToDate, condition("PodReady", "False", "PodMissing")), []string{"Ready is True although PodReady is False"}},
		"stores do not serve without an Instance":       {counted(object(ready, notUpToDate), "TiKVGroup", 3, 3, 0), []string{"Ready is True although no Instance is"}},
		"UpToDate counts":                               {counted(object(ready, upToDate), "PDGroup", 3, 2, 2), []string{"UpToDate is True although there are 2 Instances and not 3"}},
		"UpToDate of an older spec need not count":      {counted(object(ready, condition("UpToDate", "True", "UpToDate", with("observedGeneration", int64(2)))), "PDGroup", 3, 2, 2), nil},
		"UpToDate is the end of reconciling":            {object(ready, upToDate, reconciling), []string{"UpToDate is True although Reconciling is"}},
		"conditions are a list":                         {listless, []string{"not a list"}},
		"each condition is an object":                   {object("Ready"), []string{"status.conditions[0] is not an object"}},
		"each condition has the fields of a condition":  {object(map[string]any{"type": []any{}}), []string{"status.conditions[0] is not a condition"}},
		"several broken invariants are all told":        {object(ready, reconciling, stalled), []string{"both True", "UpToDate is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := invariants.Check(tc.obj)
			if assert.Len(t, got, len(tc.want), "%v", got) {
				for i, piece := range tc.want {
					assert.Contains(t, got[i], piece)
					assert.True(t, strings.HasPrefix(got[i], tc.obj.GetKind()+" default/basic-pd: "), got[i])
				}
			}
		})
	}
}
