package campaign

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// grantEdit gives a user the rights of edit in a namespace: the roles that Kubernetes and
// deploy/bases/access aggregate into it, one by one, for no controller aggregates them here.
func grantEdit(ctx context.Context, admin client.Client, crds, namespace, user string) error {
	roles, err := accessRoles(crds)
	if err != nil {
		return err
	}
	names := []string{"system:aggregate-to-edit", "system:aggregate-to-view"}
	for i := range roles {
		if roles[i].Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "true" {
			continue
		}
		if err := admin.Create(ctx, &roles[i]); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create role %s: %w", roles[i].Name, err)
		}
		names = append(names, roles[i].Name)
	}
	for _, name := range names {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "tenant-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		if err := admin.Create(ctx, binding); err != nil {
			return fmt.Errorf("bind role %s to %s: %w", name, user, err)
		}
	}
	return nil
}

// accessRoles are the roles of deploy/bases/access.
func accessRoles(crds string) ([]rbacv1.ClusterRole, error) {
	text, err := os.ReadFile(filepath.Join(crds, "..", "bases", "access", "roles.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read roles of users: %w", err)
	}
	var out []rbacv1.ClusterRole
	for _, one := range bytes.Split(text, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(one, &role); err != nil {
			return nil, fmt.Errorf("read roles of users: %w", err)
		}
		out = append(out, role)
	}
	return out, nil
}

// awaitRights waits until the API server lets a user do what was granted last. It tells
// no client when it has heard of a binding.
func awaitRights(ctx context.Context, user client.Client, namespace string) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		for _, right := range []authorizationv1.ResourceAttributes{
			{Verb: "create", Group: v1alpha1.GroupName, Resource: "pdgroups"}, {Verb: "list", Group: v1alpha1.GroupName, Resource: "instances"},
			{Verb: "create", Resource: "configmaps"}, {Verb: "list", Resource: "pods"},
		} {
			right.Namespace = namespace
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
			if err := user.Create(ctx, review); err != nil || !review.Status.Allowed {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the tenant's rights: %w", err)
	}
	return nil
}
