package containers

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/e2e/session"
	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

const (
	// answerLimit bounds how long one question may take.
	answerLimit = 10 * time.Second
	// answerSize bounds an answer, bytes.
	answerSize = 16 << 20
)

// Address is where the Service of a TiDBGroup, or of a TiProxyGroup, listens for MySQL, as
// this machine reaches it.
func (w *World) Address(ctx context.Context, group string) (string, error) {
	return w.service(ctx, group, "mysql")
}

// service is where a named port of a Service listens.
func (w *World) service(ctx context.Context, name, port string) (string, error) {
	if w.provider.Name() != provider.Local {
		return "", scenario.ErrNotHere // Services are reached from the host only there
	}
	var service corev1.Service
	if err := w.session.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, &service); err != nil {
		return "", fmt.Errorf("find Service %s: %w", name, err)
	}
	for _, p := range service.Spec.Ports {
		if p.Name == port {
			return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(p.Port))), nil
		}
	}
	return "", fmt.Errorf("find port %s of Service %s", port, name)
}

// Login implements scenario.World.
func (w *World) Login(ctx context.Context, l scenario.Login) (out workload.Login, err error) {
	out.User = l.UserName()
	if out.Address, err = w.Address(ctx, l.TiDBGroup); err != nil {
		return out, err
	}
	if !l.Plain {
		if out.TLS, err = w.mysql(ctx, l.TiDBGroup); err != nil {
			return out, err
		}
	}
	if l.PasswordFrom != "" {
		out.Password, err = w.password(ctx, l.PasswordFrom)
	}
	return out, err
}

// Query implements scenario.World: the first column of the first row, as text.
func (w *World) Query(ctx context.Context, q scenario.SQL) (answer string, err error) {
	login, err := w.Login(ctx, q.Login)
	if err != nil {
		return "", err
	}
	as := session.Login(login.Address)
	as.User, as.Passwd, as.TLS = login.User, login.Password, login.TLS
	if q.Snapshot != "" {
		as.Params = map[string]string{"tidb_snapshot": "'" + q.Snapshot + "'"}
	}
	if q.Is == nil {
		return "", session.Execute(ctx, as, q.Run)
	}
	return session.Ask(ctx, as, q.Run)
}

// password reads what "secret/key" names.
func (w *World) password(ctx context.Context, from string) (string, error) {
	name, key, _ := strings.Cut(from, "/")
	data, err := w.secret(ctx, name)
	return string(data[key]), err
}

// Replicated implements scenario.World.
func (w *World) Replicated(ctx context.Context) error {
	return w.eachPD(ctx, func(pd server) error {
		for _, check := range []string{"miss-peer", "down-peer", "pending-peer", "extra-peer", "offline-peer"} {
			var regions struct{ Count int }
			if err := pd.ask(ctx, "/pd/api/v1/regions/check/"+check, &regions); err != nil {
				return err
			}
			if regions.Count > 0 {
				return fmt.Errorf("PD lists %d regions under %s", regions.Count, check)
			}
		}
		return nil
	})
}

// storeStatus is what PD says of a store.
type storeStatus struct {
	Store struct {
		Address string `json:"address"`
	} `json:"store"`
	Status struct {
		Regions int `json:"region_count"`
		Leaders int `json:"leader_count"`
	} `json:"status"`
}

// Regions implements scenario.World.
func (w *World) Regions(ctx context.Context, pod string) (all, led int, err error) {
	found := false
	err = w.eachPD(ctx, func(pd server) error {
		var answer struct{ Stores []storeStatus }
		if err := pd.ask(ctx, "/pd/api/v1/stores", &answer); err != nil {
			return err
		}
		for _, s := range answer.Stores {
			if strings.HasPrefix(s.Store.Address, pod+".") {
				all, led, found = s.Status.Regions, s.Status.Leaders, true
			}
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("PD lists no store of pod %s", pod)
	}
	return all, led, err
}

// eachPD does something with the Service of each PDGroup.
func (w *World) eachPD(ctx context.Context, do func(pd server) error) error {
	var groups v1alpha1.PDGroupList
	if err := w.session.Client.List(ctx, &groups, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("list PDGroups: %w", err)
	}
	for _, g := range groups.Items {
		address, err := w.service(ctx, g.Name, "client")
		if err == nil {
			var over *tls.Config
			if over, err = w.over(ctx, &g, names.ServiceHost(g.Name, w.namespace, g.Spec.ClusterDomain)); err == nil {
				err = do(server{address, over})
			}
		}
		if err != nil {
			return fmt.Errorf("ask PDGroup %s: %w", g.Name, err)
		}
	}
	return nil
}

// Setting implements scenario.World.
func (w *World) Setting(ctx context.Context, name, key string) (string, error) {
	pod, over, err := w.memberOf(ctx, name)
	if err != nil {
		return "", err
	}
	path, port := "/config", v1alpha1.PortTiKVStatus
	switch pod.Labels[v1alpha1.LabelComponent] {
	case "tidb":
		path, port = "/settings", v1alpha1.PortTiDBStatus
	case "pd":
		path, port = "/pd/api/v1/config", v1alpha1.PortPDClient
	}
	settings := map[string]any{}
	member := server{net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))), over}
	if err := member.ask(ctx, path, &settings); err != nil {
		return "", err
	}
	var value any = settings
	for step := range strings.SplitSeq(key, ".") {
		fields, ok := value.(map[string]any)
		if !ok {
			return "", fmt.Errorf("pod %s shows no setting %s", name, key)
		}
		value = fields[step]
	}
	return fmt.Sprint(value), nil
}

// server is who answers HTTP at an address.
type server struct {
	address string
	// over is how it is connected to over TLS; nil without.
	over *tls.Config
}

// ask gets JSON from a path.
func (s server) ask(ctx context.Context, path string, into any) (err error) {
	url := httpclient.Scheme(s.over) + "://" + s.address + path
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.over}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerSize))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %.200s", url, response.Status, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read answer of %s: %w", url, err)
	}
	return nil
}

// Paste implements scenario.World: commands of messages are pasted in the rig.
func (w *World) Paste(context.Context, string, string) error { return scenario.ErrNotHere }
