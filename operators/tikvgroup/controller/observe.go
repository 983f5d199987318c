package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// observe reads everything that plan and report decide from.
func (r *steps) observe(ctx context.Context, g *v1alpha1.TiKVGroup) (observation.Snapshot, error) {
	s, err := reading.Observe(ctx, r.Env, g)
	if err != nil {
		return s, err
	}
	s.Hold = r.holds.get(client.ObjectKeyFromObject(g))
	s.Running, s.RunningPending = r.members.Observe(g, s.Instances)
	if !asksPD(g, s) {
		return s, nil
	}
	moving, err := reading.IsAnyProgressing(ctx, r.Env, g, &v1alpha1.TiKVGroupList{})
	if err != nil {
		return s, err
	}
	reading.AskPD(r.Env, g, &s, moving)
	reading.AskRegions(ctx, r.Env, g, &s)
	s.Flushed = r.stores.EndedPods()
	return s, nil
}

// asksPD reports whether PD can say anything of interest about a group.
func asksPD(g *v1alpha1.TiKVGroup, s observation.Snapshot) bool {
	return len(s.Instances) > 0 && g.DeletionTimestamp == nil && s.PDGroup != nil
}

// holds are the restarts that are held back, by group.
type holds struct {
	mu      sync.Mutex
	byGroup map[types.NamespacedName]observation.Hold
}

func (h *holds) get(key types.NamespacedName) observation.Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byGroup[key]
}

func (h *holds) set(key types.NamespacedName, hold observation.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold.Instance == "" {
		delete(h.byGroup, key)
		return
	}
	if h.byGroup == nil {
		h.byGroup = map[types.NamespacedName]observation.Hold{}
	}
	h.byGroup[key] = hold
}
