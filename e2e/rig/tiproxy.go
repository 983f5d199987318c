package rig

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/drain"
)

// clientsAnnotation is by which a scenario says how many clients are connected to the
// TiProxy of a pod; without it none is.
const clientsAnnotation = "rig.groups.tidb.dev/clients"

// startTiProxy starts the process of a TiProxy. It needs no other process to start.
func (a *actor) startTiProxy(ctx context.Context, l launch) (failed, err error) {
	if failed, err = a.configure(ctx, l.pod, l.process, settings.NewTiProxy); failed != nil || err != nil {
		return failed, err
	}
	port, err := openStatusPort(ctx, a.door(l.pod), v1alpha1.PortTiProxyAPI, a.tiproxyPort(client.ObjectKeyFromObject(l.pod), l.process.config))
	if err != nil {
		return nil, err
	}
	l.process.ip = port.ip
	l.process.stop = func() error { port.close(); return nil }
	l.process.handover = hookRunner(map[string]program{"drain-clients": func(ctx context.Context, args []string) error {
		command, err := drain.Parse(args, podVariables(l.pod))
		if err != nil {
			return err
		}
		if command.Job.TLS, err = a.files(ctx, l.pod, command.Job.TLS, ""); err != nil {
			return err
		}
		// Each pod has an address of its own here.
		command.Job.Metrics = strings.Replace(command.Job.Metrics, "localhost", port.ip, 1)
		command.Job.Delay, command.Job.Within = a.faster(command.Job.Delay), a.faster(command.Job.Within)
		command.Job.Poll = hookPoll
		return command.Run(ctx, nil)
	}})
	return nil, nil
}

// tiproxyPort is what the TiProxy of a pod answers about itself.
func (a *actor) tiproxyPort(pod client.ObjectKey, config *settings.Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/admin/config/", config.TiProxy)
	mux.HandleFunc("GET /api/debug/health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /metrics/", func(w http.ResponseWriter, r *http.Request) {
		var now corev1.Pod
		if err := a.live.Get(r.Context(), pod, &now); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "tiproxy_server_connections %s\n", cmp.Or(now.Annotations[clientsAnnotation], "0")) // the reader is gone if it fails
	})
	return mux
}
