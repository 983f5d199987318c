package localcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// criAnswer is how long a containerd may take for one answer: one that hangs is
// asked again, and named when its time to get ready is over.
const criAnswer = 5 * time.Second

// criReady asks a containerd, over the interface that kubelets use, whether it can
// run pods. That its socket is open does not tell: its part for Kubernetes starts
// after that, and needs a network configuration.
func criReady(socket string) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, criAnswer)
		defer cancel()
		conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return fmt.Errorf("connect to %s: %w", socket, err)
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		runtime := cri.NewRuntimeServiceClient(conn)
		if _, err := runtime.Version(ctx, &cri.VersionRequest{}); err != nil {
			return fmt.Errorf("ask for the version of the runtime: %w", err)
		}
		answer, err := runtime.Status(ctx, &cri.StatusRequest{})
		if err != nil {
			return fmt.Errorf("ask for the status of the runtime: %w", err)
		}
		return checkConditions(answer.GetStatus().GetConditions())
	}
}

// checkConditions names what a runtime lacks of the two conditions that the interface
// demands of every runtime.
func checkConditions(conditions []*cri.RuntimeCondition) error {
	said := map[string]*cri.RuntimeCondition{}
	for _, c := range conditions {
		said[c.GetType()] = c
	}
	var lacks []string
	for _, wanted := range []string{cri.RuntimeReady, cri.NetworkReady} {
		switch c := said[wanted]; {
		case c == nil:
			lacks = append(lacks, wanted+" is not reported")
		case !c.GetStatus():
			lacks = append(lacks, fmt.Sprintf("%s is false: %s: %s", wanted, c.GetReason(), c.GetMessage()))
		}
	}
	if len(lacks) > 0 {
		return errors.New(strings.Join(lacks, "; "))
	}
	return nil
}
