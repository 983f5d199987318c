package controlplane

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User returns access as a user of the given groups, with a client certificate.
// The user may do only what RBAC grants; group "system:masters" may do all.
func (cp *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	cp.users.Lock()
	defer cp.users.Unlock()
	user, err := cp.env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}

// ServiceAccount returns access as a service account, whether it exists or not:
// what an operator's RBAC grants is what this client may do.
func (cp *ControlPlane) ServiceAccount(namespace, name string) *rest.Config {
	config := rest.CopyConfig(cp.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{
			"system:serviceaccounts",
			"system:serviceaccounts:" + namespace,
			"system:authenticated",
		},
	}
	return config
}
