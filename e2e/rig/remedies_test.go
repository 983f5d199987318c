package rig_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/remedy"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/rig/sample"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// slots are what stands where a text is filled in, by what stands around it.
func slots() []struct {
	before, after *regexp.Regexp
	value         string
} {
	slot := func(before, after, value string) struct {
		before, after *regexp.Regexp
		value         string
	} {
		return struct {
			before, after *regexp.Regexp
			value         string
		}{regexp.MustCompile(before + "$"), regexp.MustCompile("^" + after), value}
	}
	return []struct {
		before, after *regexp.Regexp
		value         string
	}{
		slot(`-n `, ``, "default"),
		slot(`kubectl -n default `, ``, "describe instance x-0"),
		slot(`"spec":\{"`, ``, "suspended"),
		slot(`":`, `\}`, "true"),
		slot(`(?:annotate|describe|delete|edit|patch|scale) `, ``, "tidbgroup"),
		slot(`[ ']`, `(?:=|-(?:[ ;,)]|$))`, "groups.tidb.dev/some-key"),
		slot(`=`, ``, "1"),
		slot(`names: `, ``, "x"),
	}
}

// filled is a text with names that no object has.
func filled(format string) string {
	const mark = "\x00"
	left := remedy.Fill(format, func(string) string { return mark })
	for strings.Contains(left, mark) {
		before, after, _ := strings.Cut(left, mark)
		value := "x-0"
		for _, s := range slots() {
			if s.before.MatchString(before) && s.after.MatchString(after) {
				value = s.value
				break
			}
		}
		left = before + value + after
	}
	return left
}

// P11: whatever a message tells to run is a command that kubectl has and an API server
// knows, with the right flags; that the objects are there is looked at where scenarios
// print it.
func TestP11KubectlTakesEveryCommandOfAMessage(t *testing.T) {
	t.Parallel()
	root, err := binaries.Root()
	require.NoError(t, err)
	texts, err := remedy.ListTexts(root)
	require.NoError(t, err)
	r := rig.New(t, plane, rig.Options{CertManager: true}) // messages name its kinds, too
	tried := map[string]bool{}
	for _, text := range texts {
		commands := remedy.Commands(filled(text.Format))
		assert.NotEmpty(t, commands, text.Format)
		for _, c := range commands {
			if tried[c.Line] {
				continue
			}
			tried[c.Line] = true
			if err := r.Try(t.Context(), c.Line); err != nil {
				assert.Contains(t, err.Error(), "from server (NotFound)", "%s: %q tells to run %q", text.File, text.Format, c.Line)
			}
		}
	}
	t.Logf("%d texts, %d commands", len(texts), len(tried))
}

// That kubectl takes a command says nothing of objects that are not there, nor of fields.
func TestAKnownCommandIsStillChecked(t *testing.T) {
	t.Parallel()
	r, err := rig.Open(t.Context(), plane, rig.Options{Name: "known", ReasonDeadline: time.Second, Remedies: rig.NewKubectl()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	say := func(by, words, edit string) string {
		g := sample.PDGroup(by, 1)
		g.Namespace = r.Namespace()
		require.NoError(t, r.User().Create(t.Context(), g))
		message := words + ": kubectl -n " + r.Namespace() + " edit " + edit
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInvalidSpec, Message: message, LastTransitionTime: metav1.Now()}}
		require.NoError(t, r.User().Status().Update(t.Context(), g))
		return message
	}
	soon := func(what string, holds func() bool) {
		require.Eventually(t, holds, rig.Timeout, 50*time.Millisecond, what)
	}
	wrong := func(words string) bool {
		return slices.ContainsFunc(r.Watcher.Violations(), func(v string) bool { return strings.Contains(v, words) })
	}

	right := say("a", "set spec.replicas", "pdgroup a")
	soon("it is right", func() bool { return slices.Contains(r.Watcher.Tried(), right) })
	say("b", "reduce spec.replicas", "pdgroup absent")
	soon("no such object", func() bool { return wrong(`pdgroups.groups.tidb.dev "absent" not found`) })
	say("c", "remove spec.replica", "pdgroup c")
	soon("no such field", func() bool { return wrong("a PDGroup has no field spec.replica,") })
	require.NoError(t, r.User().Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace(), Name: "d"}}))
	known := say("d", "it lacks a key", "secret d")
	soon("it is right, though nothing watches Secrets", func() bool { return slices.Contains(r.Watcher.Tried(), known) })
	say("e", "another key is missing", "secret absent")
	soon("no such Secret", func() bool { return wrong(`secrets "absent" not found`) })
	assert.False(t, wrong(right))
}

func TestACommandThatKubectlRefusesIsRefused(t *testing.T) {
	t.Parallel()
	r := rig.New(t, plane, rig.Options{})
	group := sample.PDGroup("x", 1)
	r.Apply(group)
	here := "kubectl -n " + r.Namespace()
	for line, says := range map[string]string{
		here + ` patch pdgroup x --type=merge -p '{"spec":{"suspend":true}}'`: `unknown field "spec.suspend"`,
		here + " scale pdgroup x --replicas=-1":                               "must be greater than or equal to 0",
		here + " annotate pdgroup x key":                                      "at least one annotation update is required",
		"kubectl -n default describe tidbgrup x":                              "the server doesn't have a resource type",
		"kubectl -n default scale tikvgroup x --replica=0":                    "unknown flag: --replica",
		"kubectl -n default patch tikvgroup x -p '{}' --type=mrg":             "--type must be one of",
		"kubectl -n default annotate pvc x":                                   "at least one annotation update is required",
		"kubectl -n default delete pod PODNAME":                               "is no placeholder",
		"kubectl -n default apply -f FILE":                                    "no message tells to do that",
	} {
		assert.ErrorContains(t, r.Try(t.Context(), line), says, line)
	}
}
