package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// noImage as the value of --image.
	noImage = "none"
	// containerName is what the operator's container is called in its pod.
	containerName = "operator"
	// namespaceFile tells a pod its namespace.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// ownImage returns the image of the pod that the operator runs in, as its spec names
// it. Outside of a pod there is none.
func ownImage(ctx context.Context, cfg *rest.Config) (string, error) {
	namespace, err := os.ReadFile(namespaceFile)
	if errors.Is(err, os.ErrNotExist) {
		return noImage, nil
	}
	name := os.Getenv("POD_NAME")
	if err != nil || name == "" {
		return "", errors.Join(errors.New("variable POD_NAME or the namespace of this pod is not known"), err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return "", fmt.Errorf("build client: %w", err)
	}
	return ImageOf(ctx, c, client.ObjectKey{Namespace: strings.TrimSpace(string(namespace)), Name: name})
}

// ImageOf returns the image of an operator's pod. The operator reads its own.
func ImageOf(ctx context.Context, c client.Reader, key client.ObjectKey) (string, error) {
	var pod corev1.Pod
	if err := c.Get(ctx, key, &pod); err != nil {
		return "", fmt.Errorf("get pod %s: %w", key, err)
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == containerName {
			return pod.Spec.Containers[i].Image, nil
		}
	}
	return "", fmt.Errorf("pod %s has no container %s", key, containerName)
}
