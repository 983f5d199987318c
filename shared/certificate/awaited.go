package certificate

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// awaited says what is wrong with a Secret that is made for a group, by whom, and where to
// look.
func awaited(g v1alpha1.Group, pd *v1alpha1.PDGroup, wrong error, secret Secret) string {
	what := fmt.Sprintf("Secret %s, %v", secret.Name, wrong)
	if errors.Is(wrong, errAbsent) {
		what = fmt.Sprintf("Secret %s does not exist yet", secret.Name)
	}
	return what + ": " + cmp.Or(secret.Said, made(g, pd, secret))
}

// made says who makes a Secret, and where to look if it is not.
func made(g v1alpha1.Group, pd *v1alpha1.PDGroup, secret Secret) string {
	if issuer := v1alpha1.SourceOf(pd).Issuer; issuer != nil {
		return fmt.Sprintf("%s %s of PDGroup %s is to sign it: kubectl -n %s describe certificate %s", issuer.KindOrDefault(), issuer.Name, pd.Name, g.GetNamespace(), secret.Name)
	}
	return fmt.Sprintf("the CA of PDGroup %s is to sign it: kubectl -n %s describe pdgroup %s", pd.Name, g.GetNamespace(), pd.Name)
}
