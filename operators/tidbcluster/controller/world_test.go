package controller

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// world is the stage of a TidbCluster; the test plays the groups' operators.
type world struct {
	stage.Subject[*v1alpha1.TidbCluster]
	operator *stage.Operator
}

// begin makes a world and starts the operator in it.
func begin(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{Subject: stage.NewSubject(rig.Stage(t), "basic", func() *v1alpha1.TidbCluster { return &v1alpha1.TidbCluster{} })}
	w.operator = w.Operate(Definition())
	w.Follow(&v1alpha1.TidbClusterList{}, nil)
	return w
}

// groups reads the groups, as kind and name.
func (w *world) groups() map[string]v1alpha1.Group {
	w.Helper()
	out := map[string]v1alpha1.Group{}
	for _, component := range v1alpha1.ComponentTable() {
		list := component.NewList()
		require.NoError(w, w.Client.List(w.Context(), list, client.InNamespace(w.Namespace)))
		for _, g := range v1alpha1.GroupsIn(list) {
			out[g.GroupKind()+" "+g.GetName()] = g
		}
	}
	return out
}

// sample is the TidbCluster of deploy/samples/basic.yaml.
func sample(t require.TestingT, namespace string, changes ...func(*v1alpha1.TidbCluster)) *v1alpha1.TidbCluster {
	text, err := os.ReadFile("../../../deploy/samples/basic.yaml")
	require.NoError(t, err)
	c := &v1alpha1.TidbCluster{}
	require.NoError(t, yaml.UnmarshalStrict(text, c))
	c.Namespace = namespace
	for _, change := range changes {
		change(c)
	}
	return c
}

// create creates a TidbCluster.
func (w *world) create(changes ...func(*v1alpha1.TidbCluster)) {
	w.Helper()
	w.Create(sample(w, w.Namespace, changes...))
}
