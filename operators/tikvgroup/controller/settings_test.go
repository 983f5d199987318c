package controller

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// storePorts are the status ports of all stores of the tests, by host.
var storePorts = &statusPorts{values: map[string]map[string]any{}, posts: map[string]int{}} //nolint:gochecknoglobals // the operator that all tests share has one API

type statusPorts struct {
	mu     sync.Mutex
	values map[string]map[string]any
	posts  map[string]int
}

// Show implements settings.API.
func (p *statusPorts) Show(_ context.Context, host string) (map[string]any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return map[string]any{"raftstore": maps.Clone(p.values[host])}, nil
}

// Take implements settings.API. A size of lots is refused.
func (p *statusPorts) Take(_ context.Context, host string, items map[string]string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, value := range items {
		if value == "lots" {
			return "500 Internal Server Error: failed to update, error: bad value for " + key, nil
		}
	}
	if p.values[host] == nil {
		p.values[host] = map[string]any{}
	}
	for key, value := range items {
		p.values[host][strings.TrimPrefix(key, "raftstore.")] = value
	}
	p.posts[host]++
	return "", nil
}

// of returns a value of the store at a host, and how often it was given any.
func (p *statusPorts) of(host, key string) (any, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.values[host][key], p.posts[host]
}

// online returns a stage with a group whose stores are given their configuration
// while they run.
func online(t *testing.T, config string) (*stage.Stage, *v1alpha1.TiKVGroup) {
	t.Helper()
	s, g := running(t, 2)
	s.Edit(g, func() { g.Spec.ConfigUpdate, g.Spec.Config = v1alpha1.ConfigOnline, config })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	return s, g
}

func TestKV25AnOnlineEditReachesEveryStoreAndRestartsNone(t *testing.T) {
	t.Parallel()
	s, g := online(t, "[raftstore]\nraft-entry-max-size = \"8MB\"\n")
	assert.Empty(t, s.StoppedInstances(), "an item that is added is given as well")
	old := g.Status.CurrentRevision
	s.Edit(g, func() { g.Spec.Config = "[raftstore]\nraft-entry-max-size = \"16MB\"\napply-pool-size = 3\n" })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.NotEqual(t, old, g.Status.CurrentRevision)
	assert.Equal(t, int32(2), g.Status.UpdatedReplicas)
	for _, i := range s.Instances() {
		value, posts := storePorts.of(i.Status.PodIP, "raft-entry-max-size")
		assert.Equal(t, "16MB", value, i.Name)
		assert.Equal(t, 2, posts, i.Name)
		assert.NotEmpty(t, i.Status.MadeFrom)
		assert.Equal(t, i.Spec.Revision, i.Status.Revision)
		assert.NotContains(t, i.Annotations, v1alpha1.AnnotationAppliedConfig)
	}
	assert.Empty(t, s.StoppedInstances())
	s.AtRest()
	s.RequireNoWrites(2 * time.Second)
}

func TestKV25ARefusedItemIsNamedAndUndoneBySettingItBack(t *testing.T) {
	t.Parallel()
	const good = "[raftstore]\nraft-entry-max-size = \"8MB\"\n"
	s, g := online(t, good)
	before := s.Instances()
	s.Edit(g, func() { g.Spec.Config = "[raftstore]\nraft-entry-max-size = \"lots\"\n" })
	c := s.Condition(g, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonConfigRefused)
	assert.Contains(t, c.Message, "raftstore.raft-entry-max-size = lots")
	assert.Contains(t, c.Message, "failed to update")
	assert.Contains(t, c.Message, "kubectl -n "+s.Namespace+" edit tikvgroup basic-tikv")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	for n, i := range s.Instances() {
		assert.Equal(t, before[n].Spec, i.Spec, "a pod that is recreated gets files that are known to be good")
	}
	s.Edit(g, func() { g.Spec.Config = good })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.NoCondition(g, v1alpha1.ConditionStalled)

	// The remedy that the message names: TiKV reads its file when it starts.
	s.Edit(g, func() { g.Spec.Config = "[raftstore]\nraft-entry-max-size = \"lots\"\n" })
	s.Condition(g, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonConfigRefused)
	assert.Empty(t, s.StoppedInstances())
	s.Edit(g, func() { g.Spec.ConfigUpdate = v1alpha1.RestartForConfig })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Len(t, s.StoppedInstances(), 2)
	s.AtRest()
}
