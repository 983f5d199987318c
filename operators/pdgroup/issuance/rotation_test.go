package issuance

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

// rotating is a cluster whose CA is to be replaced.
func rotating(t *testing.T) (*v1alpha1.PDGroup, Observed) {
	t.Helper()
	pd, o := certified(t)
	tikv := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tikv", Namespace: "shop", UID: "kv"}}
	tikv.Spec.TLS, tikv.Spec.PDGroup.Name = &v1alpha1.TLS{}, "basic-pd"
	o.Groups = []v1alpha1.Group{pd, tikv}
	pd.Spec.TLS.SelfSigned.RotatedAt = "today"
	return pd, o
}

// started has every group run with the certificates that there are.
func started(pd *v1alpha1.PDGroup, o Observed) {
	for _, g := range o.Groups {
		s := certificate.SecretsFor(g, pd)
		for _, secret := range []*certificate.Secret{&s.Member, &s.Client} {
			secret.Data = o.Secrets[secret.Name].Data
		}
		status := g.GetGroupStatus()
		status.Certificates = s.Statuses(now)
		status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionTrue}}
	}
}

// settled carries plans out until nothing is written any more, with groups that stand still.
func settled(t *testing.T, pd *v1alpha1.PDGroup, o Observed) (Observed, Plan) {
	t.Helper()
	for range 5 {
		p := MakePlan(pd, o, now)
		pd.Status.CARotation = p.Rotation
		if len(p.Secrets) == 0 && p.CA == nil {
			return o, p
		}
		o = carried(t, pd, o, p)
		if p.CA != nil {
			secret := p.CA.Live.DeepCopy()
			if secret.Data = p.CA.Data; secret.Data == nil {
				next, err := NewAuthority(pd.Name, now.Add(time.Minute))
				require.NoError(t, err)
				secret.Data = trustBoth(p.CA.Live.Data, next)
				secret.Annotations = map[string]string{v1alpha1.AnnotationRotatedAt: "today"}
			}
			o.Secrets[caSecret] = secret
		}
	}
	require.Fail(t, "it never comes to an end")
	return o, Plan{}
}

// At each moment every two members trust each other, whatever each has started with last.
func knowsEachOther(t *testing.T, before, after Observed) {
	t.Helper()
	for _, a := range before.Requests {
		for _, b := range after.Requests {
			one, err := certificate.Parse(before.Secrets[a.Secret].Data)
			require.NoError(t, err)
			two, err := certificate.Parse(after.Secrets[b.Secret].Data)
			require.NoError(t, err)
			for _, pair := range [][2]certificate.Pair{{one, two}, {two, one}} {
				assert.NoError(t, pair[0].SignedBy(pair[1].CA, now))
			}
		}
	}
}

func TestSEC01ACAIsReplacedInThreePhases(t *testing.T) {
	pd, o := rotating(t)
	started(pd, o)
	first := o.Secrets[caSecret].Data
	before := o
	for _, phase := range []v1alpha1.CARotationPhase{v1alpha1.RotationTrustBoth, v1alpha1.RotationNewLeaves, v1alpha1.RotationTrustNew} {
		var p Plan
		o, p = settled(t, pd, o)
		require.NotNil(t, p.Rotation, phase)
		assert.Equal(t, phase, p.Rotation.Phase)
		assert.Contains(t, p.Rotation.Message, "PDGroup basic-pd has not read Secret")
		knowsEachOther(t, before, o)
		again, _ := settled(t, pd, o)
		assert.Equal(t, o, again, "it stays in a phase for as long as a member has not started with it")
		started(pd, o)
		before = o
	}
	o, p := settled(t, pd, o)
	assert.Nil(t, p.Rotation, "it is done")
	last := o.Secrets[caSecret].Data
	assert.NotEqual(t, first["tls.crt"], last["tls.crt"])
	assert.Equal(t, last["tls.crt"], last["ca.crt"])
	assert.NotContains(t, last, "next.key")
	assert.NotContains(t, last, "previous.crt")
	assert.NotContains(t, string(o.Secrets[kvSecret].Data["ca.crt"]), string(first["tls.crt"]))
}

// A user may put a CA into ca.crt whose text does not end with a line feed.
func TestSEC01ARotationKeepsCAsWhoseTextHasNoLastLineFeed(t *testing.T) {
	pd, o := rotating(t)
	others, err := NewAuthority("other", now)
	require.NoError(t, err)
	ca := o.Secrets[caSecret]
	ca.Data["ca.crt"] = bytes.TrimSpace(slices.Concat(others["tls.crt"], ca.Data["tls.crt"]))
	o, _ = settled(t, pd, o)
	started(pd, o)
	before := o
	for _, trusted := range []int{3, 3, 2} {
		o, _ = settled(t, pd, o)
		knowsEachOther(t, before, o)
		for _, request := range o.Requests {
			assert.Len(t, parseCertificates(o.Secrets[request.Secret].Data["ca.crt"]), trusted)
		}
		started(pd, o)
		before = o
	}
}

func TestSEC01ARotationWaitsForEveryGroup(t *testing.T) {
	pd, o := rotating(t)
	assert.Nil(t, MakePlan(pd, o, now).CA, "nothing begins before all is well")
	started(pd, o)
	require.NotNil(t, MakePlan(pd, o, now).CA)
	tikv := o.Groups[1].GetGroupStatus()
	tikv.Conditions[0].Status = metav1.ConditionFalse
	assert.Nil(t, MakePlan(pd, o, now).CA, "a group rolls")
	tikv.Conditions[0].Status, tikv.Conditions[0].ObservedGeneration = metav1.ConditionTrue, 7
	assert.Nil(t, MakePlan(pd, o, now).CA, "or has to")
	started(pd, o)
	tikv.Certificates[0].Trust = "another"
	assert.Nil(t, MakePlan(pd, o, now).CA, "or has not read its Secret")
}

func TestSEC01ARotationStopsWhileThePDGroupIsPaused(t *testing.T) {
	pd, o := rotating(t)
	started(pd, o)
	o, _ = settled(t, pd, o)
	started(pd, o)
	pd.Spec.Paused = true
	p := MakePlan(pd, o, now)
	assert.Nil(t, p.CA)
	assert.Equal(t, "spec.paused of the PDGroup", p.Rotation.Message)
	pd.Spec.Paused = false
	assert.NotNil(t, MakePlan(pd, o, now).CA)
}

func TestSEC01ACAThatAUserHasMadeIsNotReplaced(t *testing.T) {
	pd, o := rotating(t)
	started(pd, o)
	o.Secrets[caSecret].Labels = nil
	p := MakePlan(pd, o, now)
	assert.Nil(t, p.CA)
	assert.Contains(t, p.Outcome.Message, "Secret basic-pd-ca-secret was not made by the operators, which do not replace its CA: to have them do it: kubectl -n shop label secret basic-pd-ca-secret app.kubernetes.io/managed-by=tidb-groups")
}

// A rotation that no user asks for in ten years begins by itself, once.
func TestSEC01ACAIsReplacedByItselfBeforeItEnds(t *testing.T) {
	pd, o := rotating(t)
	pd.Spec.TLS.SelfSigned.RotatedAt = ""
	later := func(years int) time.Time { return now.AddDate(years, 0, 1) }
	renewed := func(years int) Plan { // with leafs that were renewed meanwhile
		by, err := ReadAuthority(o.Secrets[caSecret].Data)
		require.NoError(t, err)
		for _, request := range o.Requests {
			o.Secrets[request.Secret].Data, err = by.Sign(request, later(years))
			require.NoError(t, err)
		}
		started(pd, o)
		return MakePlan(pd, o, later(years))
	}
	assert.Nil(t, renewed(7).CA)
	p := renewed(8)
	require.NotNil(t, p.CA)
	assert.Contains(t, p.CA.Why, "TrustBoth: another CA was made")

	mine := o.Secrets[caSecret].DeepCopy()
	mine.Labels = nil
	o.Secrets[caSecret], mine = mine, o.Secrets[caSecret]
	assert.Nil(t, MakePlan(pd, o, later(8)).CA, "a user's CA is theirs")
	o.Secrets[caSecret] = mine

	next, err := NewAuthority(pd.Name, later(8))
	require.NoError(t, err)
	o.Secrets[caSecret].Data = distrustPrevious(signWithNext(trustBoth(mine.Data, next)))
	assert.Nil(t, renewed(9).CA, "the next one has just begun")
}

// A CA that a user has brought, with whatever else is to be trusted beside it in ca.crt.
func TestSEC01AuthoritiesThatAUserHasPutIntoTheCASecretStay(t *testing.T) {
	pd, o := rotating(t)
	pd.Spec.TLS.SelfSigned.RotatedAt = ""
	other, err := NewAuthority("corp", now)
	require.NoError(t, err)
	ca := o.Secrets[caSecret].DeepCopy()
	ca.Labels = nil // a user has made it
	ca.Data["ca.crt"] = append(append([]byte{}, ca.Data["ca.crt"]...), other["tls.crt"]...)
	o.Secrets[caSecret] = ca
	for range 3 {
		started(pd, o)
		p := MakePlan(pd, o, now)
		require.Nil(t, p.CA, "the user's Secret is not written")
		assert.Nil(t, p.Rotation)
		o = carried(t, pd, o, p)
	}
}

// So do those beside a CA that the operators replace.
func TestSEC01AuthoritiesOfAUserStayInARotation(t *testing.T) {
	pd, o := rotating(t)
	other, err := NewAuthority("corp", now)
	require.NoError(t, err)
	ca := o.Secrets[caSecret]
	first := ca.Data["tls.crt"]
	ca.Data["ca.crt"] = append(append([]byte{}, ca.Data["ca.crt"]...), other["tls.crt"]...)
	for _, phase := range []v1alpha1.CARotationPhase{v1alpha1.RotationTrustBoth, v1alpha1.RotationNewLeaves, v1alpha1.RotationTrustNew} {
		o, _ = settled(t, pd, o)
		started(pd, o)
		var p Plan
		o, p = settled(t, pd, o)
		require.NotNil(t, p.Rotation, phase)
		assert.Equal(t, phase, p.Rotation.Phase)
	}
	trusted := string(o.Secrets[caSecret].Data["ca.crt"])
	assert.Contains(t, trusted, string(other["tls.crt"]))
	assert.Contains(t, trusted, string(o.Secrets[caSecret].Data["tls.crt"]))
	assert.NotContains(t, trusted, string(first))

	started(pd, o)
	p := MakePlan(pd, o, now)
	assert.Nil(t, p.CA, "another CA in ca.crt is no rotation")
	assert.Nil(t, p.Rotation)
}
