package certificate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// What a reconcile asks of the certificates of a group.
func isReconciled(s Secrets, pd *v1alpha1.PDGroup) bool {
	o := s.Judge(pd, pd, nil, now)
	return o.Message+s.DescribeExpiry(pd, pd, now) == "" && s.Trust() != "" && len(s.Statuses(now)) > 0
}

func held(t testing.TB, load bool) (Secrets, *v1alpha1.PDGroup) {
	t.Helper()
	ca, err := pki.New(now)
	require.NoError(t, err)
	pd := pdGroup(&v1alpha1.PDTLS{CertificateSource: v1alpha1.CertificateSource{SelfSigned: &v1alpha1.SelfSigned{}}})
	s := SecretsFor(pd, pd)
	for of, names := range map[*Secret][]string{&s.Member: sans(), &s.Client: nil} {
		of.Data, err = ca.Secret(pki.Leaf{Names: names, From: now.AddDate(0, 0, -1), Until: now.AddDate(0, 0, 8)})
		require.NoError(t, err)
		if load {
			of.Load()
		}
	}
	return s, pd
}

func TestSEC01ASecretIsParsedOnceForAReconcile(t *testing.T) {
	s, pd := held(t, true)
	require.True(t, isReconciled(s, pd))
	s.Member.Data, s.Client.Data = map[string][]byte{v1alpha1.TLSKeyCA: nil}, map[string][]byte{v1alpha1.TLSKeyCA: nil}
	assert.True(t, isReconciled(s, pd), "what was parsed is not parsed again")
}

// A reconcile of a PDGroup, with Secrets that were parsed where they were read, and without.
func BenchmarkReconcile(b *testing.B) {
	for name, load := range map[string]bool{"parsed when read": true, "parsed by each": false} {
		b.Run(name, func(b *testing.B) {
			s, pd := held(b, load)
			for b.Loop() {
				if !isReconciled(s, pd) {
					b.Fatal("the certificates are no good")
				}
			}
		})
	}
}
