package membership

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	httpURL  = "http://a-%d.a-peer.ns.svc:2380"
	httpsURL = "https://a-%d.a-peer.ns.svc:2380"
)

// situation is a PDGroup of three whose spec.tls was changed.
type situation struct {
	serves      string // what its members listen with
	tls         bool   // what the spec wants
	suspended   bool
	stopped     bool // its pods have
	recorded    bool // that PD lists both
	urls        []string
	unreachable bool // PD does not answer
	other       v1alpha1.Group
}

func (c situation) build() (*v1alpha1.PDGroup, observation.Snapshot) {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "group"}}
	if c.tls {
		g.Spec.TLS = &v1alpha1.PDTLS{}
	}
	g.Spec.Suspended = c.suspended
	g.Status.ClusterID, g.Status.Scheme, g.Status.PeersHaveBothSchemes = "73", c.serves, c.recorded
	s := observation.Snapshot{PD: pd.View{ClusterID: "73", Leader: "a-0"}}
	for n := range 3 {
		i := &v1alpha1.Instance{ObjectMeta: workload.Meta(g, fmt.Sprintf("a-%d", n))}
		i.Generation, i.Spec.Suspended, i.Status.ObservedGeneration, i.Status.PodUID = 2, c.suspended, 2, "pod"
		if c.stopped {
			i.Status.PodUID = ""
		}
		s.Instances = append(s.Instances, i)
		m := pd.Member{Name: i.Name, ID: fmt.Sprint(n), Healthy: true, PeerURL: fmt.Sprintf(c.urls[0], n)}
		if len(c.urls) > 1 {
			m.OtherPeerURL = fmt.Sprintf(c.urls[1], n)
		}
		s.PD.Members = append(s.PD.Members, m)
	}
	if c.unreachable || c.stopped {
		s.PD = pd.View{Err: pd.ErrNoLeader}
	}
	if c.other != nil {
		s.Groups = append(s.Groups, c.other)
	}
	return g, s
}

func store(suspended, tls bool) v1alpha1.Group {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv"}}
	g.Spec.Suspended = suspended
	if tls {
		g.Spec.TLS = &v1alpha1.TLS{}
	}
	return g
}

// SEC-01: PD's members start with another scheme only when all have stopped, and each knew
// the others by both before.
func TestSEC01TheSchemeOfPDChangesWhileItIsSuspended(t *testing.T) {
	plain, both := []string{httpURL}, []string{httpURL, httpsURL}
	for name, c := range map[string]struct {
		situation
		scheme   string   // of the members
		told     []string // URLs that the first member is given
		wait     string   // what they wait for before they stop
		problem  string   // why they may not start
		haveBoth bool
	}{
		"nothing is changed":                        {situation: situation{serves: "http", urls: plain}, scheme: "http"},
		"an operator before this one said nothing":  {situation: situation{tls: true, urls: []string{httpsURL}}, scheme: "https"},
		"one that stops as it is is told nothing":   {situation: situation{serves: "http", suspended: true, urls: plain}, scheme: "http"},
		"PD is told before it stops":                {situation: situation{serves: "http", tls: true, suspended: true, urls: plain, other: store(true, true)}, scheme: "http", told: both, wait: "setting the https URLs"},
		"and waits until that is recorded":          {situation: situation{serves: "http", tls: true, suspended: true, urls: both}, scheme: "http", wait: "setting the https URLs", haveBoth: true},
		"then it stops":                             {situation: situation{serves: "http", tls: true, suspended: true, recorded: true, urls: both}, scheme: "http", haveBoth: true},
		"and starts otherwise":                      {situation: situation{serves: "http", tls: true, suspended: true, recorded: true, stopped: true, urls: both}, scheme: "https", haveBoth: true},
		"when it is back, the old ones are removed": {situation: situation{serves: "https", tls: true, recorded: true, urls: both}, scheme: "https", told: []string{httpsURL}, haveBoth: true},
		"and that is the end":                       {situation: situation{serves: "https", tls: true, urls: []string{httpsURL}}, scheme: "https"},
		"back again":                                {situation: situation{serves: "https", suspended: true, urls: []string{httpsURL}}, scheme: "https", told: []string{httpsURL, httpURL}, wait: "setting the http URLs"},
		"a group that is not suspended is awaited":  {situation: situation{serves: "http", tls: true, suspended: true, urls: plain, other: store(false, true)}, scheme: "http", wait: "TiKVGroup kv has to be suspended"},
		"and one that was not changed":              {situation: situation{serves: "http", tls: true, suspended: true, urls: plain, other: store(true, false)}, scheme: "http", wait: "TiKVGroup kv has to be suspended"},
		"a PD that does not answer does not stop":   {situation: situation{serves: "http", tls: true, suspended: true, unreachable: true, urls: plain}, scheme: "http", wait: "PD must have the https URLs of its members before it stops: "},
		"a change that comes too late":              {situation: situation{serves: "http", tls: true, suspended: true, stopped: true, urls: plain}, scheme: "http", wait: "PD must have", problem: "it was added after PD had stopped, and its members reach each other by http only"},
		"and the other way round":                   {situation: situation{serves: "https", suspended: true, stopped: true, urls: []string{httpsURL}}, scheme: "https", wait: "PD must have", problem: "it was removed after PD had stopped"},
		"resumed before it stopped":                 {situation: situation{serves: "http", tls: true, recorded: true, urls: both}, scheme: "http", problem: "PD's pods were not stopped for it", haveBoth: true},
		"taken back before it stopped":              {situation: situation{serves: "http", recorded: true, urls: both}, scheme: "http", told: plain, haveBoth: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := c.build()
			assert.Equal(t, c.scheme, Scheme(g, s))
			assert.Equal(t, c.haveBoth, HaveBothSchemes(g, s))
			if c.wait == "" {
				assert.True(t, MaySwitch(g, s).IsAllowed())
			}
			assert.Contains(t, MaySwitch(g, s).Reason(), c.wait)
			if c.problem == "" {
				assert.True(t, MayStart(g, s).IsAllowed())
			}
			assert.Contains(t, MayStart(g, s).Reason(), c.problem)
			wrong := WrongPeerURLs(g, s)
			if c.told == nil {
				assert.Empty(t, wrong)
				return
			}
			for n, told := range wrong {
				var urls []string
				for _, format := range c.told {
					urls = append(urls, fmt.Sprintf(format, n))
				}
				assert.Equal(t, PeerURLs{ID: fmt.Sprint(n), Name: fmt.Sprintf("a-%d", n), URLs: urls}, told)
			}
			assert.Len(t, wrong, 3)
		})
	}
}

// A group without any member has nothing to change.
func TestSEC01AGroupThatHasNoMemberYetFollowsItsSpec(t *testing.T) {
	g, s := situation{serves: "http", tls: true, suspended: true, urls: []string{httpURL}}.build()
	g.Status.ClusterID, s.Instances, s.PD = "", nil, pd.View{Err: pd.ErrNoLeader}
	assert.Equal(t, "https", Scheme(g, s))
	assert.True(t, MayStart(g, s).IsAllowed())
}
