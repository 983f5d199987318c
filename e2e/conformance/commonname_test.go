package conformance_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// pdCluster are three real members of PD, each of which has a folder with its certificate.
type pdCluster struct {
	clients map[string]string
	run     func(name, allowed string)
}

// newPDCluster returns members with certificates of some common names.
func newPDCluster(t *testing.T, ca *pki.CA, commons ...string) pdCluster {
	t.Helper()
	dir := t.TempDir()
	out, peers, initial, hosts := pdCluster{clients: map[string]string{}}, map[string]string{}, []string{}, []string{serverName, "127.0.0.1"}
	for _, name := range memberNames {
		out.clients[name], peers[name] = loopback.Address(t), loopback.Address(t)
		initial = append(initial, name+"=https://"+peers[name])
		for _, address := range []string{out.clients[name], peers[name]} {
			host, _, err := net.SplitHostPort(address)
			require.NoError(t, err)
			hosts = append(hosts, host)
		}
	}
	program, err := binaries.Path(t.Context(), "pd-server")
	require.NoError(t, err)
	for n, name := range memberNames {
		issueAs(t, ca, filepath.Join(dir, name+"-tls"), commons[n], hosts...)
	}
	out.run = func(name, allowed string) {
		config := filepath.Join(dir, name+".toml")
		require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "[security]\ncacert-path = '%[1]s/ca.crt'\ncert-path = '%[1]s/tls.crt'\nkey-path = '%[1]s/tls.key'\n%[2]s", filepath.Join(dir, name+"-tls"), allowed), 0o600))
		run(t, name, program, "--name="+name, "--data-dir="+filepath.Join(dir, name), "--client-urls=https://"+out.clients[name], "--advertise-client-urls=https://"+out.clients[name],
			"--peer-urls=https://"+peers[name], "--advertise-peer-urls=https://"+peers[name], "--config="+config, "--initial-cluster="+strings.Join(initial, ","))
	}
	return out
}

// healthy counts the members that PD calls healthy, as the operators ask it with a
// certificate.
func (c pdCluster) healthy(t *testing.T, shown *tls.Config) int {
	t.Helper()
	client, err := pdclient.NewDialer("http://"+c.clients[memberNames[0]], pdclient.WithTLS(func(types.NamespacedName) (*tls.Config, error) { return shown, nil }))(types.NamespacedName{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	view, err := client.View(ctx)
	if err != nil {
		return 0
	}
	out := 0
	for _, m := range view.Members {
		if m.Healthy {
			out++
		}
	}
	return out
}

// What a roll that adds spec.tls.allowedCommonNames goes through: some members demand a name,
// others do not. Another common name is refused by those that do, which is what the operators
// look at before they restart one.
func TestSEC01ARealPDLetsMembersOfAnAllowedNameConnect(t *testing.T) {
	onlyReal(t)
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	client := filepath.Join(t.TempDir(), "client")
	issueAs(t, ca, client, "operators")
	shown := connecting(t, client)
	const demands = "cert-allowed-cn = ['members']\n"

	good := newPDCluster(t, ca, "members", "members", "members")
	for n, name := range memberNames {
		good.run(name, map[bool]string{true: demands}[n > 0])
	}
	require.Eventually(t, func() bool { return good.healthy(t, shown) == len(memberNames) }, timeout, 100*time.Millisecond,
		"members with the demand and without it know each other, and clients of the client port need no name")

	bad := newPDCluster(t, ca, "members", "members", "stranger")
	for n, name := range memberNames {
		bad.run(name, map[bool]string{true: demands}[n < len(memberNames)-1])
	}
	require.Eventually(t, func() bool { return bad.healthy(t, shown) == len(memberNames)-1 }, timeout, 100*time.Millisecond)
	assert.Never(t, func() bool { return bad.healthy(t, shown) == len(memberNames) }, 5*time.Second, 500*time.Millisecond, "the one of another name is refused")
}

// The status port of a real TiDB, which is what the operators connect to with their
// certificate.
func TestSEC01ARealTiDBLetsAllowedNamesConnect(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	dir := t.TempDir()
	inside, client, stranger := filepath.Join(dir, "inside"), filepath.Join(dir, "client"), filepath.Join(dir, "stranger")
	issueAs(t, ca, inside, "servers", serverName)
	issueAs(t, ca, client, "operators")
	issueAs(t, ca, stranger, "stranger")
	server := newTiDB(t, dir)
	server.run(t, fmt.Sprintf("[security]\ncluster-ssl-ca = '%[1]s/ca.crt'\ncluster-ssl-cert = '%[1]s/tls.crt'\ncluster-ssl-key = '%[1]s/tls.key'\ncluster-verify-cn = ['servers', 'operators']\n", inside))
	ask := func(shows string) error {
		_, err := server.settings(t, connecting(t, shows))
		return err
	}
	require.Eventually(t, func() bool { err = ask(client); return err == nil }, 2*timeout, 200*time.Millisecond, "%v", err)
	require.NoError(t, ask(inside))
	require.Error(t, ask(stranger), "the same CA has signed it")
}
