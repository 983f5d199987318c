package issuance

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Act carries a plan out. What it writes is read again at the next look.
func (r *Reader) Act(ctx context.Context, env operator.Env, pd *v1alpha1.PDGroup, p Plan) step.Outcome {
	if !p.MakesCA && len(p.Secrets) == 0 && len(p.Certificates) == 0 && p.CA == nil {
		return step.Done()
	}
	worst := step.Done()
	for _, one := range p.Certificates {
		worst = step.Worst(worst, r.apply(ctx, env, pd, one))
	}
	if p.MakesCA {
		authority, o := r.createCA(ctx, env, pd)
		if o.Kind != step.KindDone {
			return o
		}
		p.Authority = authority
	}
	for _, write := range p.Secrets {
		worst = step.Worst(worst, r.write(ctx, env, pd, p.Authority, write))
	}
	if p.CA != nil {
		worst = step.Worst(worst, r.rotate(ctx, env, pd, *p.CA))
	}
	return worst
}

// rotate writes the Secret of the CA, if it still is what was seen.
func (r *Reader) rotate(ctx context.Context, env operator.Env, pd *v1alpha1.PDGroup, to Rotate) step.Outcome {
	secret := to.Live.DeepCopy()
	secret.Data = to.Data
	if to.Data == nil {
		next, err := NewAuthority(pd.Name, env.Now())
		if err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
		secret.Data = trustBoth(to.Live.Data, next)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, v1alpha1.AnnotationRotatedAt, v1alpha1.SourceOf(pd).SelfSigned.RotatedAt)
	}
	r.Forget(pd)
	if err := env.Client.Update(ctx, secret, client.FieldOwner(env.Name)); err != nil {
		return writeOutcome(err, hinderedSecrets, secret)
	}
	env.Recorder.Eventf(pd, nil, corev1.EventTypeNormal, "CARotation", "Rotate", "%s", to.Why)
	return step.RetryAfter(step.ConflictDelay, v1alpha1.ReasonProgressing, to.Why) // the certificates are next, and no watch reports Secrets
}

// apply applies a Certificate.
func (r *Reader) apply(ctx context.Context, env operator.Env, pd *v1alpha1.PDGroup, one Apply) step.Outcome {
	var live client.Object
	if one.Live != nil {
		live = one.Live
	}
	result, err := env.Apply().Object(ctx, one.Desired, live)
	if result != apply.Unchanged {
		r.Forget(pd)
	}
	if result == apply.Created {
		env.Recorder.Eventf(pd, one.Desired, corev1.EventTypeNormal, string(apply.Created), "Apply", "Created Certificate %s", one.Desired.GetName())
	}
	return writeOutcome(err, hinderedCertificates, one.Desired)
}

// createCA makes the CA of a cluster, once: what is there is never written over.
func (r *Reader) createCA(ctx context.Context, env operator.Env, pd *v1alpha1.PDGroup) (Authority, step.Outcome) {
	held, err := NewAuthority(pd.Name, env.Now())
	if err != nil {
		return Authority{}, step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	secret := &corev1.Secret{ObjectMeta: renderMetadata(certificate.Request{Secret: v1alpha1.CASecretName(pd), Owner: pd}), Type: corev1.SecretTypeTLS, Data: held}
	if at := v1alpha1.SourceOf(pd).SelfSigned.RotatedAt; at != "" {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, v1alpha1.AnnotationRotatedAt, at)
	}
	workload.KeepUnowned(secret) // a cluster that is restored from its claims has the same CA
	r.Forget(pd)
	if err := env.Client.Create(ctx, secret, client.FieldOwner(env.Name)); err != nil {
		return Authority{}, writeOutcome(err, hinderedSecrets, secret)
	}
	env.Recorder.Eventf(pd, nil, corev1.EventTypeNormal, string(apply.Created), "Sign", "Created the CA of the cluster, in Secret %s", secret.Name)
	authority, err := ReadAuthority(held)
	if err != nil {
		return authority, step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	return authority, step.Done()
}

// write writes a Secret, if it still is what was seen.
func (r *Reader) write(ctx context.Context, env operator.Env, pd *v1alpha1.PDGroup, by Authority, w Write) step.Outcome {
	secret := &corev1.Secret{ObjectMeta: renderMetadata(w.Request), Type: corev1.SecretTypeTLS}
	if w.Live != nil {
		secret = w.Live.DeepCopy()
	}
	if w.Signs {
		held, err := by.Sign(w.Request, env.Now())
		if err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("make Secret %s: %w", w.Request.Secret, err))
		}
		secret.Data = held
	} else {
		secret.Data = maps.Clone(secret.Data)
		secret.Data[v1alpha1.TLSKeyCA] = by.trusted
	}
	r.Forget(pd)
	var err error
	if w.Live == nil {
		err = env.Client.Create(ctx, secret, client.FieldOwner(env.Name))
	} else {
		err = env.Client.Update(ctx, secret, client.FieldOwner(env.Name))
	}
	if err == nil {
		env.Recorder.Eventf(pd, secret, corev1.EventTypeNormal, "CertificateSigned", "Sign", "Wrote Secret %s: %s", secret.Name, w.Why)
	}
	return writeOutcome(err, hinderedSecrets, secret)
}

// writeOutcome is how a write ended.
func writeOutcome(err error, hindered string, object metav1.Object) step.Outcome {
	switch {
	case err == nil:
		return step.Done()
	case apierrors.IsForbidden(err):
		return certificate.Stall(hindered)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return step.Conflict(v1alpha1.ReasonProgressing, object.GetName()+" has changed meanwhile")
	}
	return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("write %s: %w", object.GetName(), err))
}
