package certificate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// LookAgain is how often it is looked whether Secrets have changed that are as they should
	// be.
	LookAgain = 3 * time.Minute
	// ReviewAgain is how often groups at rest are looked at as a whole, with their Secrets: for
	// what time alone changes.
	ReviewAgain = 10 * time.Minute
	// endsSoon is when a certificate is about to end, so that minutes count.
	endsSoon = 2 * time.Hour
	// LookSoon is how often those are read that are not: no watch reports them.
	LookSoon = 3 * time.Second
	// lookWhileMade is how often those are read that an issuer or the CA is making.
	lookWhileMade = 500 * time.Millisecond
)

// Secrets are those that a group uses.
type Secrets struct {
	// Member is that of the group's own members, Client that of their clients,
	// MySQL that which MySQL clients are shown, and Backend that which proxies show to the
	// servers whose MySQL clients they are.
	Member, Client, MySQL, Backend Secret
	// Others are the other groups of the cluster, whose members connect to those of the
	// group.
	Others []Other
}

// Cluster are the groups of a PDGroup, itself among them.
type Cluster struct {
	PDGroup *v1alpha1.PDGroup
	Groups  []v1alpha1.Group
}

// Other is another group of the cluster.
type Other struct {
	Group v1alpha1.Group
	// Member is the Secret of its members; read only if the group lets certain common names
	// connect alone.
	Member Secret
}

// SecretsFor names the Secrets that a group uses; pd is its PDGroup, nil if there is none.
func SecretsFor(g v1alpha1.Group, pd *v1alpha1.PDGroup) Secrets {
	var out Secrets
	made := v1alpha1.SourceOf(pd).MakesSecrets()
	if pd != nil {
		out.Client.Name = v1alpha1.ClientSecretName(pd)
		out.Client.Made = made && pd.Spec.TLS.ClientSecretName == ""
	}
	out.Member.Name, out.MySQL.Name, out.Backend.Name = v1alpha1.ClusterSecretName(g), v1alpha1.MySQLSecretName(g), v1alpha1.BackendSecretName(g)
	out.Member.Made = made && g.GetTLS() != nil && g.GetTLS().SecretName == ""
	if mysql := v1alpha1.MySQLOf(g); mysql != nil {
		out.MySQL.Made = made && mysql.SecretName == ""
	}
	if backend := v1alpha1.BackendOf(g); backend != nil {
		out.Backend.Made = made && backend.SecretName == ""
	}
	return out
}

// purpose is what one of the Secrets is for.
type purpose struct {
	secret Secret
	names  []string
	uses   []use
}

// purposes are what the Secrets of a group are for; pods are those that there are.
func (s Secrets) purposes(g v1alpha1.Group, pods []string) []purpose {
	var out []purpose
	for _, p := range []purpose{
		{s.Member, Hosts(g, pods), []use{serverAuth(), clientAuth()}},
		{s.Client, nil, []use{clientAuth()}},
		{s.MySQL, mysqlNames(g), mysqlUses(g)},
		{s.Backend, nil, []use{clientAuth()}},
	} {
		if p.secret.Name != "" {
			out = append(out, p)
		}
	}
	return out
}

// all are the Secrets that are wanted, each once.
func (s Secrets) all() []Secret {
	var out []Secret
	for _, one := range []Secret{s.Member, s.Client, s.MySQL, s.Backend} {
		if one.Name != "" && !slices.ContainsFunc(out, func(o Secret) bool { return o.Name == one.Name }) {
			out = append(out, one)
		}
	}
	return out
}

// Statuses report when the certificates expire that can be read.
func (s Secrets) Statuses(now time.Time) []v1alpha1.CertificateStatus {
	var out []v1alpha1.CertificateStatus
	for _, one := range s.all() {
		if pair, err := one.Pair(); err == nil {
			first := pair.firstToExpire(now)
			begin := metav1.NewTime(first.NotBefore.UTC())
			status := v1alpha1.CertificateStatus{SecretName: one.Name, NotAfter: metav1.NewTime(first.NotAfter.UTC()), NotBefore: &begin}
			if one.Made {
				status.Trust = one.Trust()
			}
			out = append(out, status)
		}
	}
	return out
}

// Judge says what a user has to fix of the certificates of a group before anything is
// made or restarted with them; Done if nothing is. pods are those that there are. Those of a
// suspended group stop, whatever its certificates are.
func (s Secrets) Judge(g v1alpha1.Group, pd *v1alpha1.PDGroup, pods []string, now time.Time) step.Outcome {
	if o := compareTLS(g, pd); o.Kind != step.KindDone || g.GetTLS() == nil || g.GetComponentSpec().Suspended {
		return o
	}
	secret, wrong := s.findProblem(g, pods, now)
	if wrong == nil && v1alpha1.SourceOf(pd).SelfSigned != nil {
		secret, wrong = s.findDifferentCA()
	}
	switch {
	case wrong == nil:
		return step.Done()
	case secret.Made && !secret.Blocked:
		return step.Wait("Secret", awaitedFor(g, now), v1alpha1.ReasonWaitingForCertificate, describeMadeSecret(g, pd, wrong, secret))
	case secret.Made:
		return Stall(describeMadeSecret(g, pd, wrong, secret))
	}
	return Stall(describeUserSecret(g, wrong, secret))
}

// awaitedFor is how soon a Secret is looked at again that an issuer or the CA is making. Who
// has waited for long does not wait for a moment more.
func awaitedFor(g v1alpha1.Group, now time.Time) time.Duration {
	if c := meta.FindStatusCondition(g.GetGroupStatus().Conditions, v1alpha1.ConditionReady); c != nil && now.Sub(c.LastTransitionTime.Time) > time.Minute {
		return LookSoon
	}
	return lookWhileMade
}

// Stall ends a step that a user has to help with a certificate.
func Stall(message string) step.Outcome {
	o := step.Stall(v1alpha1.ReasonCertificateInvalid, message)
	o.After = LookSoon // no watch reports Secrets
	return o
}

// compareTLS compares a group with its PDGroup. A suspended one needs no PD, and may have been
// changed together with it.
func compareTLS(g v1alpha1.Group, pd *v1alpha1.PDGroup) step.Outcome {
	if pd == nil || pd.Name == g.GetName() && g.GroupKind() == v1alpha1.KindPDGroup {
		return step.Done()
	}
	wanted, edit := v1alpha1.SpecScheme(g), origin.OfGroup(g)
	switch {
	case wanted != v1alpha1.SpecScheme(pd):
		told := "has none, so this group cannot connect to PD: leave it out here, or add it to all groups of the cluster"
		if pd.Spec.TLS != nil {
			told = "has it, so this group cannot connect to PD: add it here, or remove it from all groups of the cluster"
		}
		return step.Stall(v1alpha1.ReasonTLSMismatch, fmt.Sprintf("spec.tls: PDGroup %s %s, with suspended: true in the same edit (docs/tasks/tls.md): %s", pd.Name, told, edit.Edit()))
	case wanted != v1alpha1.PDScheme(pd) && !g.GetComponentSpec().Suspended:
		return step.Stall(v1alpha1.ReasonTLSMismatch, fmt.Sprintf("spec.tls: it was changed, and pods of PDGroup %s that were started before still run: set %s to true until no pod of the cluster runs: %s",
			pd.Name, edit.SharedField("suspended"), edit.Edit()))
	}
	return step.Done()
}

// describeUserSecret says what is wrong with a Secret that a user has to fix.
func describeUserSecret(g v1alpha1.Group, wrong error, secret Secret) string {
	switch {
	case errors.Is(wrong, errRefused):
		return fmt.Sprintf("Secret %s: the operators may not read Secrets: install them with components/tls (docs/tasks/tls.md), or leave spec.tls out of a new group", secret.Name)
	case errors.Is(wrong, errAbsent):
		return fmt.Sprintf("Secret %s does not exist: create it: kubectl -n %s create secret generic %s --from-file=ca.crt=FILE --from-file=tls.crt=FILE --from-file=tls.key=FILE",
			secret.Name, g.GetNamespace(), secret.Name)
	}
	return fmt.Sprintf("Secret %s, %v: fix it: kubectl -n %s edit secret %s", secret.Name, wrong, g.GetNamespace(), secret.Name)
}

var (
	errRefused = errors.New("the operators may not read it")
	errAbsent  = errors.New("it does not exist")
)

// findProblem is the first thing that is wrong with the Secrets, and with which; nil if nothing
// is.
func (s Secrets) findProblem(g v1alpha1.Group, pods []string, now time.Time) (Secret, error) {
	pairs := map[string]Pair{}
	for _, one := range s.all() {
		switch {
		case one.Refused:
			one.Made = false // only a user can help
			return one, errRefused
		case one.Data == nil:
			return one, errAbsent
		}
		pair, err := one.Pair()
		if err != nil {
			return one, err
		}
		pairs[one.Name] = pair
	}
	for _, p := range s.purposes(g, pods) {
		if err := pairs[p.secret.Name].validate(now, p.names, p.uses...); err != nil {
			return p.secret, err
		}
	}
	if secret, err := s.findUntrusted(pairs, now); err != nil {
		return secret, err
	}
	return s.findRefusedCommonName(g)
}

// findUntrusted says whether the members and their clients would not trust each other,
// because different CAs have signed.
func (s Secrets) findUntrusted(pairs map[string]Pair, now time.Time) (Secret, error) {
	if s.Client.Name == "" || s.Member.Name == "" {
		return Secret{}, nil
	}
	for _, pair := range [][2]Secret{{s.Member, s.Client}, {s.Client, s.Member}} {
		if err := pairs[pair[0].Name].SignedBy(pairs[pair[1].Name].CA, now); err != nil {
			return pair[0], fmt.Errorf("key %s: %s of Secret %s %s, so they would not trust each other", v1alpha1.TLSKeyCert, v1alpha1.TLSKeyCA, pair[1].Name, describeVerifyError(err))
		}
	}
	return Secret{}, nil
}

// mysqlUses are what the certificate that MySQL clients are shown is for: also to be shown by
// the Jobs of spec.sql, where clients have to show one.
func mysqlUses(g v1alpha1.Group) []use {
	if v1alpha1.VerifiesClients(g) && g.GroupKind() == v1alpha1.KindTiDBGroup {
		return []use{serverAuth(), clientAuth()}
	}
	return []use{serverAuth()}
}

// mysqlNames are the names by which MySQL clients reach a group: of its Service, and those of
// the spec.
func mysqlNames(g v1alpha1.Group) []string {
	out := []string{names.ServiceHost(g.GetName(), g.GetNamespace(), g.GetComponentSpec().ClusterDomain)}
	if mysql := v1alpha1.MySQLOf(g); mysql != nil {
		out = append(out, mysql.DNSNames...)
	}
	return out
}

// Hosts are the names that the certificate of a group's members has to have: those of its
// Services, and of the pods that there are and may be, one more than spec.replicas and
// spec.maxSurge for one that takes the place of another.
func Hosts(g v1alpha1.Group, pods []string) []string {
	domain := g.GetComponentSpec().ClusterDomain
	out := serviceHosts(g)
	for slot := range g.GetReplicas() + max(1, maxSurge(g)) {
		if pod := names.Instance(g.GetName(), slot); !slices.Contains(pods, pod) {
			pods = append(slices.Clip(pods), pod)
		}
	}
	for _, pod := range pods {
		out = append(out, names.PodHost(pod, g.GetName(), g.GetNamespace(), domain))
	}
	return out
}

// maxSurge is how many members of a group there may be beyond spec.replicas, 0 if it does not say.
func maxSurge(g v1alpha1.Group) int32 {
	if of, surges := g.(v1alpha1.SurgeGroup); surges {
		return ptr.Deref(of.GetMaxSurge(), 0)
	}
	return 0
}
