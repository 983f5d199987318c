package scenario

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
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
		leaf := pki.Leaf{Common: c.Common}
		for _, service := range services {
			leaf.Names = append(leaf.Names, service+"."+r.world.Namespace()+".svc")
		}
		if c.Ending {
			leaf.From, leaf.Until = time.Now().Add(-99*time.Hour), time.Now().Add(time.Hour)
		}
		if c.Expired {
			leaf.From, leaf.Until = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
		}
		data, err := ca.Secret(leaf)
		if err != nil {
			return fmt.Errorf("make the certificate of Secret %s: %w", name, err)
		}
		delete(data, c.Without)
		if c.ForeignKey {
			other, err := ca.Secret(leaf)
			if err != nil {
				return fmt.Errorf("make another key for Secret %s: %w", name, err)
			}
			data[v1alpha1.TLSKeyKey] = other[v1alpha1.TLSKeyKey]
		}
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

// shows is content when members show the certificates of Secrets.
func (r *runner) shows(ctx context.Context, wanted map[string]string) error {
	for pod, name := range wanted {
		var secret corev1.Secret
		if err := r.world.User().Get(ctx, types.NamespacedName{Namespace: r.world.Namespace(), Name: name}, &secret); err != nil {
			return fmt.Errorf("get Secret %s: %w", name, err)
		}
		block, _ := pem.Decode(secret.Data[v1alpha1.TLSKeyCert])
		if block == nil {
			return fmt.Errorf("key %s of Secret %s is no PEM", v1alpha1.TLSKeyCert, name)
		}
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("read the certificate of Secret %s: %w", name, err)
		}
		if have, err := r.world.Serial(ctx, pod); err != nil || have != leaf.SerialNumber.String() {
			return errors.Join(err, fmt.Errorf("pod %s shows certificate %s, Secret %s has %s", pod, have, name, leaf.SerialNumber))
		}
	}
	return nil
}
