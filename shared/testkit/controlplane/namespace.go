package controlplane

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestTimeout bounds each request of a helper.
const requestTimeout = 30 * time.Second

// CreateNamespace creates a namespace for one test, named after it and unique, with
// the service account that pods need, and returns its name. It is deleted when
// the test ends.
func CreateNamespace(t testing.TB, c client.Client) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	name, err := NewNamespace(ctx, c, t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(c.Delete(ctx, namespace)); err != nil {
			t.Logf("delete namespace %s: %v", name, err)
		}
	})
	return name
}

// NewNamespace creates a namespace whose unique name begins with a given text,
// as far as it can be part of a name, with labels and the service account that pods need.
func NewNamespace(ctx context.Context, c client.Client, begin string, labels map[string]string) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(begin), Labels: labels}}
	if err := c.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("create namespace: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}
	if err := c.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return namespace.Name, fmt.Errorf("create service account default in %s: %w", namespace.Name, err)
	}
	return namespace.Name, nil
}

// namespacePrefix turns a test's name into the beginning of a namespace's.
func namespacePrefix(test string) string {
	const longest = 40 // leaves room for the suffix, and for names derived from the namespace's
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(test), "-")
	name = strings.TrimPrefix(name, "test")
	name = strings.Trim(name[:min(len(name), longest)], "-")
	if name == "" {
		name = "test"
	}
	return name + "-"
}
