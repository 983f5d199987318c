package certificate

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/origin"
)

// describeMadeSecret says what is wrong with a Secret that is made for a group, by whom, and where to
// look.
func describeMadeSecret(g v1alpha1.Group, pd *v1alpha1.PDGroup, wrong error, secret Secret) string {
	what := fmt.Sprintf("Secret %s, %v", secret.Name, wrong)
	if errors.Is(wrong, errAbsent) {
		what = fmt.Sprintf("Secret %s does not exist yet", secret.Name)
	}
	return what + ": " + cmp.Or(secret.Said, describeIssuer(g, pd, secret))
}

// describeIssuer says who makes a Secret, and where to look if it is not. While a PDGroup is paused its
// operator signs nothing, and asks no issuer for more; cert-manager renews what it has been
// asked for.
func describeIssuer(g v1alpha1.Group, pd *v1alpha1.PDGroup, secret Secret) string {
	issuer := v1alpha1.SourceOf(pd).Issuer
	if pd.Spec.Paused && (issuer == nil || secret.Data == nil) {
		return fmt.Sprintf("nothing is signed while PDGroup %s is paused: %s", pd.Name, origin.OfGroup(pd).Unset("paused"))
	}
	if issuer != nil {
		return fmt.Sprintf("%s %s of PDGroup %s has not signed it yet: kubectl -n %s describe certificate %s", issuer.KindOrDefault(), issuer.Name, pd.Name, g.GetNamespace(), secret.Name)
	}
	return fmt.Sprintf("the CA of PDGroup %s has not signed it yet: kubectl -n %s describe pdgroup %s", pd.Name, g.GetNamespace(), pd.Name)
}
