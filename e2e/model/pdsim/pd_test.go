package pdsim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pdhttp "github.com/tikv/pd/client/http"
	"github.com/tikv/pd/client/servicediscovery"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/pdsim"
)

func newPD(t *testing.T) (*pdsim.PD, *model.ManualClock) {
	t.Helper()
	return newPDThatLoads(t, 0)
}

func newPDThatLoads(t *testing.T, regions time.Duration) (*pdsim.PD, *model.ManualClock) {
	t.Helper()
	clock := model.NewManualClock(time.Now())
	p, err := pdsim.New(pdsim.Options{
		Members:   []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"},
		ClientURL: func(name string) string { return "http://" + name + ".basic-pd-peer.ns.svc:2379" },
		Services:  []string{"basic-pd.ns.svc:2379"},
		Load:      regions,
		Cluster:   model.Options{Clock: clock},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, clock
}

func get(t *testing.T, p *pdsim.PD, url string) (int, error) {
	t.Helper()
	client := &http.Client{Transport: p.Transport(), Timeout: time.Minute}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	require.NoError(t, res.Body.Close())
	return res.StatusCode, nil
}

func TestMembersAreReachedByTheNamesThatTheyAdvertise(t *testing.T) {
	p, _ := newPD(t)
	for _, host := range []string{"basic-pd-2.basic-pd-peer.ns.svc:2379", "basic-pd.ns.svc:2379"} {
		status, err := get(t, p, "http://"+host+"/pd/api/v1/members")
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status)
	}
	_, err := get(t, p, "http://other.ns.svc:2379/pd/api/v1/members")
	require.Error(t, err)
}

func TestADeadMemberRefusesConnectionsAndTheServiceFindsAnother(t *testing.T) {
	p, clock := newPD(t)
	require.NoError(t, p.SetHealthy("basic-pd-0", false))
	_, err := get(t, p, "http://basic-pd-0.basic-pd-peer.ns.svc:2379/pd/api/v1/ping")
	require.Error(t, err)
	assert.Empty(t, p.Leader(), "an election takes its time")
	clock.Advance(3 * time.Second)
	assert.Equal(t, "basic-pd-1", p.Leader())
	status, err := get(t, p, "http://basic-pd.ns.svc:2379/pd/api/v1/members")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	assert.Empty(t, p.Alarms())
	require.NoError(t, p.SetHealthy("basic-pd-0", true))
	_, err = get(t, p, "http://basic-pd-0.basic-pd-peer.ns.svc:2379/pd/api/v1/ping")
	require.NoError(t, err)
}

func TestALostMajorityAndASecondClusterAreAlarms(t *testing.T) {
	p, _ := newPD(t)
	require.NoError(t, p.SetHealthy("basic-pd-0", false))
	require.NoError(t, p.SetHealthy("basic-pd-1", false))
	p.Bootstrap("basic-pd-0")
	var kinds []model.AlarmKind
	for _, a := range p.Alarms() {
		kinds = append(kinds, a.Kind)
	}
	assert.Equal(t, []model.AlarmKind{model.LostPDMajority, model.SecondClusterID}, kinds)
	assert.Nil(t, p.Cluster())
}

func TestAMemberOfAListedNameMayNotJoin(t *testing.T) {
	p, clock := newPD(t)
	clock.Advance(5 * time.Second)
	require.ErrorContains(t, p.Join("basic-pd-0"), "duplicated pd")
	require.NoError(t, p.Join("basic-pd-3"))
	assert.Len(t, p.URLs(), 4)
}

// The etcd in a real PD has the same rule: mayAddMember in etcdserver.
func TestAMemberJoinsOnceAllOthersWereConnectedForFiveSeconds(t *testing.T) {
	p, clock := newPD(t)
	clock.Advance(4 * time.Second)
	require.ErrorIs(t, p.Join("basic-pd-3"), pdsim.ErrUnhealthy, "they have just started")
	clock.Advance(time.Second)
	require.NoError(t, p.Join("basic-pd-3"))
	require.ErrorIs(t, p.Join("basic-pd-4"), pdsim.ErrUnhealthy, "the last one has just joined")
	clock.Advance(5 * time.Second)
	require.NoError(t, p.SetHealthy("basic-pd-1", false))
	require.ErrorIs(t, p.Join("basic-pd-4"), pdsim.ErrUnhealthy, "one is away")
	require.NoError(t, p.SetHealthy("basic-pd-1", true))
	require.ErrorIs(t, p.Join("basic-pd-4"), pdsim.ErrUnhealthy, "it has just come back")
	clock.Advance(5 * time.Second)
	require.NoError(t, p.Join("basic-pd-4"))
	assert.Len(t, p.URLs(), 5)
}

func TestTheOfficialHTTPClientWorks(t *testing.T) {
	p, clock := newPD(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, p.Cluster().Bootstrap(model.StoreMeta{ID: 1, Address: "tikv-0:20160", Version: "8.5.7"}, 2, 3))
	clock.Advance(time.Second)
	require.NoError(t, p.Cluster().Heartbeat(1, model.StoreStats{Capacity: 1 << 30}))
	discovery := servicediscovery.NewMockPDServiceDiscovery([]string{"http://basic-pd.ns.svc:2379"}, nil)
	require.NoError(t, discovery.Init())
	client := pdhttp.NewClientWithServiceDiscovery("test", discovery,
		pdhttp.WithHTTPClient(&http.Client{Transport: p.Transport()}))
	defer client.Close()
	stores, err := client.GetStores(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, stores.Count)
	assert.Equal(t, "Up", stores.Stores[0].Store.StateName)
}

func TestStartedStoresSendHeartbeatsAcrossALeaderChange(t *testing.T) {
	p, clock := newPD(t)
	for id := uint64(1); id <= 3; id++ {
		meta := model.StoreMeta{ID: id, Address: fmt.Sprintf("tikv-%d:20160", id), Version: "8.5.7"}
		require.NoError(t, p.StartStore(meta))
	}
	states := func() []string {
		views, err := p.Cluster().Stores()
		require.NoError(t, err)
		var out []string
		for _, v := range views {
			out = append(out, v.StateName)
		}
		return out
	}
	assert.Equal(t, []string{"Down", "Down", "Down"}, states())
	clock.Advance(10 * time.Second)
	assert.Equal(t, []string{"Up", "Up", "Up"}, states())
	clock.Advance(2 * time.Hour)
	assert.Equal(t, []string{"Up", "Up", "Up"}, states())

	require.NoError(t, p.SetHealthy("basic-pd-0", false))
	clock.Advance(3 * time.Second)
	assert.Equal(t, []string{"Disconnected", "Disconnected", "Disconnected"}, states())
	clock.Advance(10 * time.Second)
	assert.Equal(t, []string{"Up", "Up", "Up"}, states())

	p.StopStore(2)
	clock.Advance(time.Minute)
	assert.Equal(t, []string{"Up", "Disconnected", "Up"}, states())
	assert.Empty(t, p.Alarms())
	p.StopStore(3)
	assert.NotEmpty(t, p.Alarms(), "two of three replicas are dead")
}

func TestAForcedMemberForgetsTheOthersAndKeepsTheCluster(t *testing.T) {
	p, clock := newPD(t)
	require.NoError(t, p.StartStore(model.StoreMeta{ID: 1, Address: "tikv-1:20160", Version: "8.5.7"}))
	id := p.ClusterID()
	for _, name := range []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"} {
		require.NoError(t, p.SetHealthy(name, false))
	}
	require.NoError(t, p.ForceNewCluster("basic-pd-2"))
	clock.Advance(3 * time.Second)
	assert.Equal(t, "basic-pd-2", p.Leader())
	assert.Equal(t, id, p.ClusterID())
	assert.Len(t, p.URLs(), 1)
	stores, err := p.Cluster().Stores()
	require.NoError(t, err)
	assert.Len(t, stores, 1)

	require.NoError(t, p.SetHealthy("basic-pd-2", false))
	require.NoError(t, p.SetHealthy("basic-pd-2", true))
	clock.Advance(3 * time.Second)
	require.NoError(t, p.Join("basic-pd-1"), "the name is free again")
	assert.Len(t, p.URLs(), 2)
	assert.Equal(t, []model.AlarmKind{model.LostPDMajority}, kinds(p)[:1])
	assert.NotContains(t, kinds(p), model.TwoClusters)

	require.NoError(t, p.ForceNewCluster("basic-pd-2"))
	assert.Contains(t, kinds(p), model.TwoClusters, "another start with the flag throws out who has joined")
}

func TestForgottenMembersThatFindEachOtherAreASecondCluster(t *testing.T) {
	p, clock := newPD(t)
	for _, name := range []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"} {
		require.NoError(t, p.SetHealthy(name, false))
	}
	require.NoError(t, p.ForceNewCluster("basic-pd-2"))
	clock.Advance(3 * time.Second)
	require.NoError(t, p.SetHealthy("basic-pd-0", true))
	assert.Len(t, p.URLs(), 1, "it does not come back")
	assert.NotContains(t, kinds(p), model.TwoClusters)
	require.NoError(t, p.SetHealthy("basic-pd-1", true))
	assert.Contains(t, kinds(p), model.TwoClusters)
}

func kinds(p *pdsim.PD) []model.AlarmKind {
	var out []model.AlarmKind
	for _, a := range p.Alarms() {
		out = append(out, a.Kind)
	}
	return out
}

// The leader of a real PD asks one member after the other, each for three seconds: what is on a dead
// node neither answers nor refuses to, and one whose process has ended refuses at once.
func TestAMemberOnADeadNodeIsWaitedFor(t *testing.T) {
	p, err := pdsim.New(pdsim.Options{Members: []string{"a", "b", "c"}, Services: []string{"pd:2379"}, Ping: 200 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	client := &http.Client{Transport: p.Transport(), Timeout: time.Minute}
	ask := func() (time.Duration, int) {
		begin := time.Now()
		answer, err := client.Get("http://pd:2379/pd/api/v1/health")
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		var members []struct {
			Health bool `json:"health"`
		}
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&members))
		healthy := 0
		for _, m := range members {
			if m.Health {
				healthy++
			}
		}
		return time.Since(begin), healthy
	}
	require.NoError(t, p.SetHealthy("c", false))
	_, healthy := ask()
	assert.Equal(t, 2, healthy)
	require.NoError(t, p.Disconnect("c"))
	took, healthy := ask()
	assert.Equal(t, 2, healthy)
	assert.GreaterOrEqual(t, took, 200*time.Millisecond)
	require.NoError(t, p.SetHealthy("c", true))
	_, healthy = ask()
	assert.Equal(t, 3, healthy)
}

func TestWhoIsToldToLeadHasLoadedTheRegions(t *testing.T) {
	p, clock := newPDThatLoads(t, time.Minute)
	require.NoError(t, p.Cluster().Bootstrap(model.StoreMeta{ID: 1, Address: "a:20160", Version: "8.5.0"}, 2, 3))
	clock.Advance(time.Minute)
	restart := func(name string) {
		require.NoError(t, p.SetHealthy(name, false))
		require.NoError(t, p.SetHealthy(name, true))
	}
	lead := func(name string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://basic-pd.ns.svc:2379/pd/api/v1/leader/transfer/"+name, nil)
		require.NoError(t, err)
		res, err := (&http.Client{Transport: p.Transport(), Timeout: time.Minute}).Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	restart("basic-pd-1")
	status, err := get(t, p, "http://basic-pd-1.basic-pd-peer.ns.svc:2379/pd/api/v2/ready")
	require.NoError(t, err)
	require.Equal(t, http.StatusInternalServerError, status)
	lead("basic-pd-2")
	require.Empty(t, p.Alarms(), "it has them")
	lead("basic-pd-1")
	require.Len(t, p.Alarms(), 1)
	require.Equal(t, model.NotLoaded, p.Alarms()[0].Kind)
	restart("basic-pd-2")
	lead("basic-pd-1")
	require.Len(t, p.Alarms(), 1, "no other has them")
	clock.Advance(time.Minute)
	lead("basic-pd-1")
	require.Len(t, p.Alarms(), 1, "it has them by now")
}
