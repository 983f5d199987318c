package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqljob"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// snapshot is a group.Snapshot and what TiDB alone needs.
type snapshot struct {
	observation.Snapshot
	// BootstrapSQL says what is wrong with spec.bootstrapSQL; empty if nothing. SQL
	// is what it names, while there is no Instance.
	BootstrapSQL, SQL string
	// Labelled is what each running server was last given, by Instance.
	Labelled map[string]labelling.Labelling
	// Answer is the result of the last notification of TiDB about an upgrade.
	Answer statusport.Answer
	// Jobs that run spec.sql, and Ends, how the pods of those that have failed or go on ended, by
	// the Job's name.
	Jobs []*batchv1.Job
	Ends map[string]sqljob.End
	// Keys are the Secrets of spec.authToken and spec.sessionToken.
	Keys keyset.Secrets
}

// observe reads everything that plan and report decide from.
func (r *steps) observe(ctx context.Context, g *v1alpha1.TiDBGroup) (snapshot, error) {
	common, err := reading.Observe(ctx, r.Env, g)
	if err != nil {
		return snapshot{}, err
	}
	key := client.ObjectKeyFromObject(g)
	s := snapshot{Snapshot: common, Labelled: r.servers.Labels(key, common.Instances), Answer: r.orders.Last(key)}
	s.Running, s.RunningPending = r.members.Observe(g, s.Instances)
	if g.Spec.BootstrapSQL != nil && len(s.Instances) == 0 {
		if s.SQL, s.BootstrapSQL, err = r.bootstrapSQL(ctx, g); err != nil {
			return s, err
		}
	}
	if s.Keys, err = r.keys(ctx, g); err != nil {
		return s, err
	}
	s.Jobs, s.Ends, err = r.jobs(ctx, g)
	return s, err
}

// keys reads the Secrets with keys of tokens.
func (r *steps) keys(ctx context.Context, g *v1alpha1.TiDBGroup) (out keyset.Secrets, err error) {
	for _, one := range []struct {
		name string
		into *certificate.Secret
	}{{keyset.SecretName(g), &out.Users}, {v1alpha1.SessionTokenSecretName(g), &out.Sessions}} {
		if one.name == "" {
			continue
		}
		if *one.into, err = r.Credentials.Secret(ctx, r.Live, g, one.name); err != nil {
			return out, err
		}
	}
	return out, nil
}

// listJobs reads the Jobs of spec.sql from the cache or the API server.
func listJobs(ctx context.Context, from client.Reader, g *v1alpha1.TiDBGroup) ([]*batchv1.Job, error) {
	var list batchv1.JobList
	if err := from.List(ctx, &list, client.InNamespace(g.Namespace), client.MatchingLabels(sqljob.Selector(g))); err != nil {
		return nil, err
	}
	var out []*batchv1.Job
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// jobs reads the Jobs of spec.sql and, of those whose failure is new or that go on, what their pods
// said. Pods are in no cache here.
func (r *steps) jobs(ctx context.Context, g *v1alpha1.TiDBGroup) ([]*batchv1.Job, map[string]sqljob.End, error) {
	jobs, err := listJobs(ctx, r.Client, g)
	if err == nil && sqljob.LacksJob(g, jobs) {
		// The cache may be older than the status, right after the operator has started.
		jobs, err = listJobs(ctx, r.Live, g)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list Jobs of TiDBGroup %s: %w", g.Name, err)
	}
	ends := map[string]sqljob.End{}
	for _, job := range sqljob.ListUnreported(g, jobs, r.Now()) {
		var pods corev1.PodList
		if err := r.Live.List(ctx, &pods, client.InNamespace(g.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
			ends[job.Name] = sqljob.End{Err: fmt.Errorf("list pods of Job %s: %w", job.Name, err)}
			continue
		}
		ends[job.Name] = sqljob.EndOf(job, pods.Items)
	}
	return jobs, ends, nil
}

// bootstrapSQL looks the user's ConfigMap up before the first pod would hang on
// it without a word. It is not the suite's own and therefore not in the cache.
func (r *steps) bootstrapSQL(ctx context.Context, g *v1alpha1.TiDBGroup) (sql, missing string, err error) {
	ref := g.Spec.BootstrapSQL
	var c corev1.ConfigMap
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: ref.Name}, &c)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Sprintf("spec.bootstrapSQL.name: ConfigMap %s does not exist: create it (kubectl -n %s create configmap %s --from-file=%s=FILE)", ref.Name, g.Namespace, ref.Name, ref.Key), nil
	case err != nil:
		return "", "", fmt.Errorf("get ConfigMap %s: %w", ref.Name, err)
	}
	sql, ok := c.Data[ref.Key]
	if !ok {
		return "", fmt.Sprintf("spec.bootstrapSQL.key: ConfigMap %s has no key %q: add it", ref.Name, ref.Key), nil
	}
	return sql, "", nil
}
