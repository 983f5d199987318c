package credentials_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/credentials"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// secrets are those of an API server, by name. It counts how often it is asked.
type secrets struct {
	client.Reader
	data   map[string]map[string][]byte
	refuse bool
	asked  int
}

func (s *secrets) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.asked++
	resource := schema.GroupResource{Resource: "secrets"}
	data, there := s.data[key.Name]
	switch {
	case s.refuse:
		return apierrors.NewForbidden(resource, key.Name, nil)
	case !there:
		return apierrors.NewNotFound(resource, key.Name)
	}
	into.SetResourceVersion(string(data["tls.crt"]))
	if secret, whole := into.(*corev1.Secret); whole {
		secret.Data = data
	}
	return nil
}

// stage is a cluster with TLS, and a clock.
type stage struct {
	*secrets
	store *credentials.Store
	pd    *v1alpha1.PDGroup
	kv    *v1alpha1.TiKVGroup
	now   time.Time
}

func newStage() *stage {
	s := &stage{secrets: &secrets{data: map[string]map[string][]byte{}}, now: time.Now()}
	s.store = credentials.New(func() time.Time { return s.now })
	s.pd = &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a-pd", UID: "pd"}}
	s.pd.Spec.TLS = &v1alpha1.PDTLS{}
	s.kv = &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a-tikv", UID: "kv"}}
	s.kv.Spec.TLS, s.kv.Spec.PDGroup.Name = &v1alpha1.TLS{}, "a-pd"
	return s
}

func (s *stage) key() types.NamespacedName { return client.ObjectKeyFromObject(s.pd) }

// observe looks once more, so much later that everything is read again.
func (s *stage) observe(t *testing.T) {
	t.Helper()
	s.now = s.now.Add(time.Minute)
	_, err := s.store.Observe(t.Context(), s, s.kv, s.pd)
	require.NoError(t, err)
}

func leaf(t *testing.T) map[string][]byte {
	t.Helper()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	data, err := ca.Secret(pki.Leaf{})
	require.NoError(t, err)
	return data
}

func TestSEC01AClusterWithoutTLSReadsNoSecret(t *testing.T) {
	s := newStage()
	s.pd.Spec.TLS, s.kv.Spec.TLS = nil, nil
	s.observe(t)
	assert.Zero(t, s.asked, "nor is there a right to")
	config, err := s.store.TLSForPD(s.key())
	require.NoError(t, err)
	assert.Nil(t, config)
	assert.Nil(t, s.store.TLSForMembers(s.kv))
	assert.Nil(t, (*credentials.Store)(nil).TLSForMembers(s.kv))
}

// That a Secret was missing is not remembered for long: a member may wait for it.
func TestSEC01AMissingSecretIsReadAgainSoon(t *testing.T) {
	s := newStage()
	s.observe(t)
	look := func(after time.Duration) int {
		asked := s.asked
		s.now = s.now.Add(after)
		_, err := s.store.Observe(t.Context(), s, s.kv, s.pd)
		require.NoError(t, err)
		return s.asked - asked
	}
	assert.Zero(t, look(100*time.Millisecond), "not for each of a burst of reconciles")
	assert.Equal(t, 2, look(200*time.Millisecond))
	s.data["a-cluster-client-secret"] = leaf(t)
	assert.Equal(t, 2, look(time.Second))
	assert.Equal(t, 1, look(time.Second), "what is there is kept for longer")
}

func TestSEC01TheClientCertificateIsReloadedWhenItsSecretChanges(t *testing.T) {
	s := newStage()
	s.observe(t)
	_, err := s.store.TLSForPD(s.key())
	require.ErrorContains(t, err, "a-cluster-client-secret", "nothing is sent in the clear")
	assert.Empty(t, s.store.TLSForMembers(s.kv).RootCAs.Subjects(), "no authority is trusted") //nolint:staticcheck // of a pool of no system

	s.data["a-cluster-client-secret"] = leaf(t)
	s.observe(t)
	first, err := s.store.TLSForPD(s.key())
	require.NoError(t, err)
	assert.Equal(t, "a-pd.shop.svc", first.ServerName)
	assert.Equal(t, "a-tikv-peer.shop.svc", s.store.TLSForMembers(s.kv).ServerName)
	over, i := s.store.TLSForInstances([]v1alpha1.Group{s.pd, s.kv}), &v1alpha1.Instance{}
	i.Spec.Group.Kind, i.Spec.Group.Name = v1alpha1.KindTiKVGroup, s.kv.Name
	assert.Equal(t, "a-tikv-peer.shop.svc", over(i).ServerName)
	i.Spec.Group.Kind = v1alpha1.KindTiFlashGroup
	assert.Nil(t, over(i), "it is of no group that is known")
	s.observe(t)
	same, err := s.store.TLSForPD(s.key())
	require.NoError(t, err)
	assert.Same(t, first, same, "connections are kept while nothing changes")

	s.data["a-cluster-client-secret"] = leaf(t)
	s.observe(t)
	second, err := s.store.TLSForPD(s.key())
	require.NoError(t, err)
	assert.NotSame(t, first, second)

	for name, data := range map[string]map[string][]byte{"no certificate": {"tls.crt": []byte("x")}, "no Secret": nil} {
		if delete(s.data, "a-cluster-client-secret"); data != nil {
			s.data["a-cluster-client-secret"] = data
		}
		s.observe(t)
		kept, err := s.store.TLSForPD(s.key())
		require.NoError(t, err, name)
		assert.Same(t, second, kept, "%s: what was good is used on", name)
	}
	s.pd.Spec.TLS = nil
	s.observe(t)
	gone, err := s.store.TLSForPD(s.key())
	require.NoError(t, err)
	assert.Nil(t, gone, "another PDGroup of the name")
}

func TestSEC01ASecretThatWasReadIsNotReadAgainAtOnce(t *testing.T) {
	s := newStage()
	s.observe(t)
	asked := s.asked
	assert.Equal(t, 2, asked)
	_, err := s.store.Observe(t.Context(), s, s.kv, s.pd)
	require.NoError(t, err)
	assert.Equal(t, asked, s.asked)
	s.kv.Generation++
	_, err = s.store.Observe(t.Context(), s, s.kv, s.pd)
	require.NoError(t, err)
	assert.Equal(t, 2*asked, s.asked, "what an edit restarts is not restarted by what was there before it")

	// Others in the same process have it by name.
	_, err = s.store.Observe(t.Context(), s, s.pd, s.pd)
	require.NoError(t, err)
	read := s.asked
	_, object, err := s.store.Object(t.Context(), s, types.NamespacedName{Namespace: "shop", Name: "a-pd-cluster-secret"}, s.pd, s.kv)
	require.NoError(t, err)
	assert.Nil(t, object)
	assert.Equal(t, read, s.asked, "one store of Secrets")
	s.store.Forget(s.pd)
	_, _, err = s.store.Object(t.Context(), s, types.NamespacedName{Namespace: "shop", Name: "a-pd-cluster-secret"}, s.pd, s.kv)
	require.NoError(t, err)
	assert.Equal(t, read+1, s.asked, "what was written is read again")

	s.refuse, s.now = true, s.now.Add(time.Minute)
	found, err := s.store.Observe(t.Context(), s, s.kv, s.pd)
	require.NoError(t, err)
	assert.True(t, found.Member.Refused && found.Client.Refused)
}

// woken are the names of the groups that are woken by now.
func woken(through <-chan event.GenericEvent) (out []string) {
	for {
		select {
		case e := <-through:
			out = append(out, e.Object.GetName())
		default:
			return out
		}
	}
}

func TestSEC01AGroupAtRestIsWokenWhenItsSecretsChange(t *testing.T) {
	s := newStage()
	pd, kv := s.store.Changes(v1alpha1.KindPDGroup), s.store.Changes(v1alpha1.KindTiKVGroup)
	for _, name := range []string{"a-pd-cluster-secret", "a-cluster-client-secret"} {
		s.data[name] = map[string][]byte{"tls.crt": []byte("one")}
	}
	read := func() {
		for _, g := range []v1alpha1.Group{s.pd, s.kv} {
			_, err := s.store.Observe(t.Context(), s.secrets, g, s.pd)
			require.NoError(t, err)
		}
	}
	look := func() (ofPD, ofKV []string) {
		s.now = s.now.Add(certificate.LookAgain)
		s.store.CheckSecrets(t.Context(), s.secrets)
		return woken(pd), woken(kv)
	}
	quiet := func(why string) {
		t.Helper()
		ofPD, ofKV := look()
		assert.Empty(t, ofPD, why)
		assert.Empty(t, ofKV, why)
	}
	read()
	s.asked = 0
	quiet("nothing has changed")
	assert.Equal(t, 3, s.asked, "each Secret once for all groups")

	for _, c := range []struct {
		name   string
		change func()
	}{
		{"written", func() { s.data["a-cluster-client-secret"] = map[string][]byte{"tls.crt": []byte("two")} }},
		{"deleted", func() { delete(s.data, "a-cluster-client-secret") }},
		{"there again", func() { s.data["a-cluster-client-secret"] = map[string][]byte{"tls.crt": []byte("three")} }},
	} {
		c.change()
		ofPD, ofKV := look()
		assert.Equal(t, []string{"a-pd"}, ofPD, c.name)
		assert.Equal(t, []string{"a-tikv"}, ofKV, c.name)
		secrets, err := s.store.Observe(t.Context(), s.secrets, s.pd, s.pd)
		require.NoError(t, err)
		assert.Equal(t, s.data["a-cluster-client-secret"], secrets.Client.Data, "%s: it is read again", c.name)
		read()
		quiet(c.name + ": once")
	}

	s.data["a-tikv-cluster-secret"] = map[string][]byte{"tls.crt": []byte("made")}
	ofPD, ofKV := look()
	assert.Empty(t, ofPD, "it does not use it")
	assert.Equal(t, []string{"a-tikv"}, ofKV)

	s.now = s.now.Add(3 * certificate.ReviewAgain)
	s.asked = 0
	quiet("the groups are gone")
	assert.Zero(t, s.asked, "no Secret is read for them")
}

func TestSEC01AGroupIsWokenByASecretThatAnotherGroupHasRead(t *testing.T) {
	s := newStage()
	pd, kv := s.store.Changes(v1alpha1.KindPDGroup), s.store.Changes(v1alpha1.KindTiKVGroup)
	for _, read := range []struct {
		group v1alpha1.Group
		name  string
	}{{s.kv, "own"}, {s.pd, "shared"}, {s.kv, "shared"}} {
		_, err := s.store.Secret(t.Context(), s.secrets, read.group, read.name)
		require.NoError(t, err)
	}
	require.Equal(t, 2, s.asked, "the last was just read")
	s.data["shared"] = map[string][]byte{"tls.crt": []byte("made")}
	s.store.CheckSecrets(t.Context(), s.secrets)
	assert.Equal(t, []string{"a-pd"}, woken(pd))
	assert.Equal(t, []string{"a-tikv"}, woken(kv))
}
