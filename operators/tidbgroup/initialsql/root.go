package initialsql

import "github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"

// RootPasswordKey is the key of root's password in the Secret that the operator makes.
const RootPasswordKey = "password"

// RootSecretName is the name of that Secret.
func RootSecretName(g *v1alpha1.TiDBGroup) string { return g.Name + "-root" }

// GeneratesRootPassword reports whether the operator makes root's password.
func GeneratesRootPassword(g *v1alpha1.TiDBGroup) bool {
	return g.Spec.Initialization != nil && g.Spec.Initialization.RootPassword == v1alpha1.RootPasswordGenerate
}
