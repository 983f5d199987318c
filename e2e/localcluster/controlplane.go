package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// Grace periods, short so that the loss of a node is soon noticed and acted
// upon; a machine with few processors must still be able to keep the leases.
const (
	nodeGrace         = 16 * time.Second
	tolerationSeconds = 30
)

// readyLimit is how long one daemon may take to get ready. On an idle machine
// all are within a few seconds; a build may run beside.
const readyLimit = 90 * time.Second

func etcdURL() string { return fmt.Sprintf("https://%s:%d", gateway, etcdPort) }

func (c *Cluster) etcd() process {
	l := c.layout
	peer := fmt.Sprintf("http://%s:%d", gateway, etcdPeerPort) // no peer connects: there is one member
	info := fmt.Sprintf("http://%s:%d", gateway, etcdInfoPort)
	return process{
		name: "etcd", path: c.bin("etcd"), limit: readyLimit,
		args: []string{
			"--name=local", "--data-dir=" + l.etcd(), "--log-level=warn",
			"--listen-client-urls=" + etcdURL(), "--advertise-client-urls=" + etcdURL(),
			"--client-cert-auth=true", "--trusted-ca-file=" + l.pki("ca.crt"),
			"--cert-file=" + l.pki("etcd.crt"), "--key-file=" + l.pki("etcd.key"),
			"--listen-metrics-urls=" + info,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=local=" + peer,
			// The state need not survive a power failure, only killed processes.
			"--unsafe-no-fsync",
		},
		ready: httpReady(http.DefaultTransport, info+"/health"),
	}
}

func (c *Cluster) apiServer() process {
	l := c.layout
	return process{
		name: "kube-apiserver", path: c.bin("kube-apiserver"), limit: readyLimit,
		args: []string{
			"--etcd-servers=" + etcdURL(), "--etcd-cafile=" + l.pki("ca.crt"),
			"--etcd-certfile=" + l.pki("apiserver-etcd.crt"), "--etcd-keyfile=" + l.pki("apiserver-etcd.key"),
			"--bind-address=" + gateway, "--secure-port=" + strconv.Itoa(apiPort),
			"--advertise-address=" + gateway,
			"--service-cluster-ip-range=" + serviceRange,
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--allow-privileged=true",
			"--client-ca-file=" + l.pki("ca.crt"),
			"--tls-cert-file=" + l.pki("apiserver.crt"),
			"--tls-private-key-file=" + l.pki("apiserver.key"),
			"--kubelet-client-certificate=" + l.pki("apiserver-kubelet.crt"),
			"--kubelet-client-key=" + l.pki("apiserver-kubelet.key"),
			"--kubelet-certificate-authority=" + l.pki("ca.crt"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + l.pki("service-accounts.pub"),
			"--service-account-signing-key-file=" + l.pki("service-accounts.key"),
			fmt.Sprintf("--default-not-ready-toleration-seconds=%d", tolerationSeconds),
			fmt.Sprintf("--default-unreachable-toleration-seconds=%d", tolerationSeconds),
			"--profiling=false",
		},
		ready: c.apiReady,
	}
}

func (c *Cluster) controllerManager() process {
	l := c.layout
	return process{
		name: "kube-controller-manager", path: c.bin("kube-controller-manager"), limit: readyLimit,
		args: []string{
			"--kubeconfig=" + l.config("controller-manager.kubeconfig"),
			"--bind-address=" + gateway, "--cert-dir=" + l.config("controller-manager"),
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + l.pki("service-accounts.key"),
			"--root-ca-file=" + l.pki("ca.crt"),
			"--cluster-signing-cert-file=" + l.pki("ca.crt"),
			"--cluster-signing-key-file=" + l.pki("ca.key"),
			"--leader-elect=false",
			"--node-monitor-period=1s",
			"--node-monitor-grace-period=" + nodeGrace.String(),
			"--node-startup-grace-period=" + nodeGrace.String(),
			"--node-eviction-rate=1", "--secondary-node-eviction-rate=1",
			"--kube-api-qps=300", "--kube-api-burst=600",
			"--profiling=false",
		},
		ready: httpReady(c.insecure(), "https://"+gateway+":10257/healthz"),
	}
}

func (c *Cluster) scheduler() process {
	return process{
		name: "kube-scheduler", path: c.bin("kube-scheduler"), limit: readyLimit,
		args: []string{
			"--config=" + c.layout.config("scheduler.yaml"),
			"--bind-address=" + gateway, "--cert-dir=" + c.layout.config("scheduler"),
			"--profiling=false",
		},
		ready: httpReady(c.insecure(), "https://"+gateway+":10259/healthz"),
	}
}

func (c *Cluster) proxy() process {
	return process{
		name: "kube-proxy", path: c.bin("kube-proxy"), limit: readyLimit,
		args: []string{"--config=" + c.layout.config("proxy.yaml")},
		// livez and not healthz: the latter also wants the node to be schedulable.
		ready: httpReady(http.DefaultTransport, "http://"+gateway+":10256/livez"),
	}
}

// volumes is this program's own provisioner, as a daemon.
func (c *Cluster) volumes() process {
	return process{
		name: "volumes", path: c.volumesBinary, limit: readyLimit,
		args: []string{
			"volumes", "--kubeconfig=" + c.layout.config("volumes.kubeconfig"), "--volumes=" + c.layout.volumes(),
		},
		// It serves nothing; a claim that stays Pending shows when it does not work.
		ready: func(context.Context) error { return nil },
	}
}

// apiReady asks kube-apiserver as the administrator, so that it also shows
// that the certificates fit.
func (c *Cluster) apiReady(ctx context.Context) error {
	ca, err := os.ReadFile(c.layout.pki("ca.crt"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("no certificate in " + c.layout.pki("ca.crt"))
	}
	cert, err := tls.LoadX509KeyPair(c.layout.pki("admin.crt"), c.layout.pki("admin.key"))
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	return httpReady(transport, apiServerURL()+"/readyz")(ctx)
}

// insecure trusts any certificate: the daemons that are asked with it make their
// own, and are only asked whether they are well.
func (c *Cluster) insecure() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
}

// probeLimit bounds one question to a daemon.
const probeLimit = 3 * time.Second

// httpReady asks a URL and takes 200 for yes.
func httpReady(transport http.RoundTripper, url string) func(context.Context) error {
	client := &http.Client{Transport: transport, Timeout: probeLimit}
	return func(ctx context.Context) (err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, resp.Body.Close()) }()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s: %s", url, resp.Status, lastLines(string(body), 5))
		}
		return nil
	}
}
