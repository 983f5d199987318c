package scenario

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// certify makes Secrets with certificates, or gives those that there are other ones.
func (r *runner) certify(ctx context.Context, c Certificate) error {
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	ca, err := r.authority(c.CA)
	if err != nil {
		return err
	}
	for name, services := range c.Secrets {
		leaf := pki.Leaf{}
		for _, service := range services {
			leaf.Names = append(leaf.Names, service+"."+r.world.Namespace()+".svc")
		}
		if c.Expired {
			leaf.From, leaf.Until = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
		}
		data, err := ca.Secret(leaf)
		if err != nil {
			return fmt.Errorf("make the certificate of Secret %s: %w", name, err)
		}
		delete(data, c.Without)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.world.Namespace()}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.world.User(), secret, func() error { secret.Data = data; return nil }); err != nil {
			return fmt.Errorf("write Secret %s: %w", name, err)
		}
	}
	return nil
}

// authority is the CA of a name, which is made when it is first needed.
func (r *runner) authority(name string) (*pki.CA, error) {
	if ca := r.authorities[name]; ca != nil {
		return ca, nil
	}
	ca, err := pki.New(time.Now())
	if err == nil {
		r.authorities[name] = ca
	}
	return ca, err
}
