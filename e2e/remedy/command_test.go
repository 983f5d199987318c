package remedy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommandsAreCutOutOfMessages(t *testing.T) {
	for message, want := range map[string][]string{
		"nothing to type": nil,
		"a is not Ready yet: kubectl -n x describe pdgroup a":                                                        {"kubectl -n x describe pdgroup a"},
		"delete it (kubectl -n x delete service a) or give the group another name":                                   {"kubectl -n x delete service a"},
		"kubectl -n x delete pdgroup a, then kubectl -n x delete pvc b c, and create it again":                       {"kubectl -n x delete pdgroup a", "kubectl -n x delete pvc b c"},
		"is it running? kubectl describe pvc a -n x; and 2 more":                                                     {"kubectl describe pvc a -n x"},
		"kubectl -n x annotate instance a groups.tidb.dev/restart=$(date +%s) --overwrite":                           {"kubectl -n x annotate instance a groups.tidb.dev/restart=$(date +%s) --overwrite"},
		`to go on: kubectl -n x patch pdgroup a --type=merge -p '{"spec":{"paused":false}}'; or wait`:                {`kubectl -n x patch pdgroup a --type=merge -p '{"spec":{"paused":false}}'`},
		"see kubectl get nodes -o custom-columns='N:.metadata.name,T:.spec.taints[*].key' (0/3 nodes are available)": {"kubectl get nodes -o custom-columns='N:.metadata.name,T:.spec.taints[*].key'"},
		"kubectl -n x logs a: it says why":                                                                           {"kubectl -n x logs a"},
		"kubectl -n x exec svc/a -- /pd-ctl store delete 1":                                                          {"kubectl -n x exec svc/a -- /pd-ctl store delete 1"},
	} {
		var have []string
		for _, c := range Commands(message) {
			have = append(have, c.Line)
		}
		assert.Equal(t, want, have, message)
	}
}

func TestTheVerbAndTargetOfACommandAreFound(t *testing.T) {
	for line, want := range map[string]struct {
		effect   Effect
		resource string
		names    []string
		shape    string
	}{
		"kubectl -n x describe pdgroup a":                                                   {Reads, "pdgroup", []string{"a"}, "-n describe pdgroup NAME"},
		"kubectl delete instance a -n x":                                                    {Changes, "instance", []string{"a"}, "delete instance NAME -n"},
		"kubectl -n x delete pvc b c":                                                       {Changes, "pvc", []string{"b", "c"}, "-n delete pvc NAME NAME"},
		"kubectl -n x annotate instance a groups.tidb.dev/replace-":                         {Changes, "instance", []string{"a"}, "-n annotate instance NAME"},
		"kubectl -n x annotate --overwrite tidbcluster a 'groups.tidb.dev/allow-removal=b'": {Changes, "tidbcluster", []string{"a"}, "-n annotate --overwrite tidbcluster NAME"},
		"kubectl -n x logs job/a":                                                           {Reads, "job", []string{"a"}, "-n logs"},
		"kubectl logs a -c tikv -n x --previous":                                            {Reads, "pod", []string{"a"}, "logs NAME -c -n --previous"},
		"kubectl uncordon n":                                                                {Changes, "node", []string{"n"}, "uncordon NAME"},
		"kubectl -n x scale tikvgroup a --replicas=0":                                       {Changes, "tikvgroup", []string{"a"}, "-n scale tikvgroup NAME --replicas"},
		"kubectl explain pod.spec":                                                          {Reads, "", nil, "explain"},
		"kubectl -n x get pvc --show-labels":                                                {Reads, "pvc", []string{}, "-n get pvc --show-labels"},
		"kubectl -n x exec svc/a -- /pd-ctl":                                                {Executes, "svc", []string{"a"}, "-n exec --"},
		"pd-ctl store delete 1":                                                             {Unknown, "", nil, ""},
	} {
		found := Commands(line)
		require.Len(t, found, 1, line)
		resource, names := found[0].Targets()
		assert.Equal(t, want.effect, found[0].Effect(), line)
		assert.Equal(t, want.resource, resource, line)
		assert.Equal(t, want.names, names, line)
		assert.Equal(t, want.shape, found[0].Shape(), line)
	}
}

func TestPlaceholdersAreFound(t *testing.T) {
	assert.Equal(t, "FILE", Commands("kubectl -n x create configmap a --from-file=key=FILE")[0].Placeholder())
	assert.Equal(t, "INSTANCE", Commands("kubectl -n x annotate pdgroup a groups.tidb.dev/recover-quorum=INSTANCE/4711")[0].Placeholder())
	assert.Equal(t, "LABEL,LABEL", Commands("kubectl -n x exec svc/a -- /pd-ctl config set location-labels LABEL,LABEL")[0].Placeholder())
	assert.Empty(t, Commands("kubectl get nodes -o custom-columns='NODE:.metadata.name'")[0].Placeholder())
	assert.Empty(t, Commands("kubectl -n x annotate instance a b=")[0].Placeholder())
}

func TestATextIsRecognizedByItsUniqueWords(t *testing.T) {
	const text = "pod %s is in the way of %s: kubectl -n %s delete instance %s"
	assert.Positive(t, CountQuotedLetters("Instance a: pod a is in the way of b", text))
	assert.Positive(t, CountQuotedLetters("is in the way of", text))
	assert.Positive(t, CountQuotedLetters("pod a is in the way of b: kubectl -n c delete instance d", text))
	assert.Zero(t, CountQuotedLetters("delete instance", text))
	assert.Zero(t, CountQuotedLetters("kubectl -n ns delete instance basic-pd-0", text))
	assert.Zero(t, CountQuotedLetters("in the way", text), "too few letters")
}

func TestFieldsAreFoundAndSet(t *testing.T) {
	named := FindFields("Instance b-1 (pod.spec.containers): set spec.tikv[main].replicas to 3, or spec.paused; see .spec.taints")
	require.Len(t, named, 2)
	assert.Equal(t, []string{"spec", "tikv", "[main]", "replicas"}, named[0].Steps)
	assert.Equal(t, "spec.paused", named[1].Path)
	object := map[string]any{"spec": map[string]any{"tikv": []any{map[string]any{"replicas": 1}, map[string]any{"name": "main"}}}}
	assert.True(t, TrySet(object, SplitPath("spec.tikv[main].replicas"), 3))
	assert.True(t, TrySet(object, SplitPath("spec.tikv[].replicas"), nil))
	assert.False(t, TrySet(object, SplitPath("spec.tikv[other].replicas"), 3))
	assert.True(t, TrySet(object, SplitPath("spec.pd.config"), "x"))
	assert.True(t, TrySet(object, SplitPath("spec.tikv[more]"), map[string]any{"name": "more"}))
	assert.Equal(t, map[string]any{"spec": map[string]any{
		"pd":   map[string]any{"config": "x"},
		"tikv": []any{map[string]any{}, map[string]any{"name": "main", "replicas": 3}, map[string]any{"name": "more"}},
	}}, object)
}

func TestAPatternMatchesWhatIsMadeOfItsText(t *testing.T) {
	pattern, err := CompilePattern("claim %s holds 5%% (%d): kubectl delete pvc %s")
	require.NoError(t, err)
	assert.True(t, pattern.MatchString("Instance a: claim b holds 5% (3): kubectl delete pvc b"))
	assert.False(t, pattern.MatchString("claim b holds 5% (3): kubectl delete pod b"))
}
