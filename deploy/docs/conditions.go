package docs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Conditions returns docs/conditions.md.
func Conditions() string {
	var b strings.Builder
	b.WriteString(`<!-- Written by "make generate" from apis/groups/v1alpha1/conditions.go. Do not edit. -->

# Conditions

A spec flows down, conditions flow up: one operator sets a condition, and another operator waits for it.
` + "`Reconciling`, `Stalled` and `Paused`" + ` are present only while they are True, and the first two never together, so kstatus, Flux and
` + "`kubectl wait`" + ` understand every object. Argo CD calls every custom resource Healthy unless it has a check: ` + "`deploy/argocd/argocd-cm.yaml`" + `
has one for every kind.

Each condition carries the generation that it was computed for (` + "`observedGeneration`" + `), but for those of a member, which rest on no spec: ` + "`Joined`, `Healthy`, `Drained`" + `. A gate accepts only a current one. The message names the
object that is waited for and who must act. [Troubleshooting](troubleshooting.md) says what each reason means and what to type.

`)
	common := inAll()
	b.WriteString("## On every kind\n\n")
	writeTable(&b, common)
	for _, kind := range v1alpha1.Kinds() {
		own := slices.DeleteFunc(v1alpha1.ConditionTable(), func(c v1alpha1.ConditionInfo) bool {
			return !c.AppliesTo(kind) || len(c.Kinds) == len(v1alpha1.Kinds())
		})
		fmt.Fprintf(&b, "\n## %s\n\n", kind)
		if len(own) == 0 {
			mirrored := ""
			if kind == v1alpha1.KindTidbCluster {
				mirrored = ", mirrored from its groups"
			}
			fmt.Fprintf(&b, "Only the conditions of every kind%s.\n", mirrored)
			continue
		}
		b.WriteString("Beside the conditions of every kind:\n\n")
		writeTable(&b, own)
	}
	b.WriteString("\n## Reasons\n\n")
	b.WriteString("`Ready`, `UpToDate`, `Reconciling` and `Stalled` repeat the most pressing reason of all below them. A reason that belongs to status True appears on that condition only.\n\n")
	b.WriteString("`" + strings.Join(listReasons(), "`, `") + "`\n")
	return b.String()
}

// inAll returns the conditions that stand on every kind.
func inAll() []v1alpha1.ConditionInfo {
	return slices.DeleteFunc(v1alpha1.ConditionTable(), func(c v1alpha1.ConditionInfo) bool {
		return len(c.Kinds) != len(v1alpha1.Kinds())
	})
}

// listReasons returns every reason of the conditions of every kind once, in the order of
// the alphabet.
func listReasons() []string {
	var all []string
	for _, c := range inAll() {
		all = append(all, c.Reasons...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func writeTable(b *strings.Builder, conditions []v1alpha1.ConditionInfo) {
	b.WriteString("| condition | meaning of True | polarity | set by | reasons |\n|---|---|---|---|---|\n")
	for _, c := range conditions {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", c.Type, c.Meaning, describePolarity(c), c.SetBy, reasonsOf(c))
	}
}

func describePolarity(c v1alpha1.ConditionInfo) string {
	switch {
	case c.Latch:
		return "good when True, and never goes back"
	case c.Polarity == v1alpha1.NegativePolarity:
		return "present only when True"
	default:
		return "good when True"
	}
}

// reasonsOf lists a condition's reasons, or points to the list below where that
// would repeat the whole of it.
func reasonsOf(c v1alpha1.ConditionInfo) string {
	const few = 20 // more than any condition has that is not of every kind
	if len(c.Reasons) > few {
		return "see [Reasons](#reasons)"
	}
	return "`" + strings.Join(c.Reasons, "`, `") + "`"
}
