package localcluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// bridge is the name of the one network interface that is created on the host.
	bridge = "tgl0"
	// cniNetwork is the name in the CNI configuration.
	cniNetwork = "tidb-groups-local"
	// proxyTable is the nftables table that kube-proxy creates; it cannot be renamed.
	proxyTable = "kube-proxy"
)

// run executes a program of the host and returns its output.
func run(ctx context.Context, name string, args ...string) (string, error) {
	return runIn(ctx, nil, name, args...)
}

// runIn is run with an environment of its own; nil is the caller's.
func runIn(ctx context.Context, env []string, name string, args ...string) (string, error) {
	path, ok := findExecutable(name)
	if !ok {
		return "", fmt.Errorf("run %s: not found", name)
	}
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = env
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// link is what `ip -json` tells of an interface.
type link struct {
	Name      string `json:"ifname"`
	MAC       string `json:"address"`
	Alias     string `json:"ifalias"`
	Addresses []struct {
		Family string `json:"family"`
		Local  string `json:"local"`
		Length int    `json:"prefixlen"`
	} `json:"addr_info"`
}

func listLinks(ctx context.Context, args ...string) ([]link, error) {
	out, err := run(ctx, "ip", append([]string{"-json", "address", "show"}, args...)...)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(out) == "" {
		return nil, nil
	}
	var found []link
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return nil, fmt.Errorf("parse interfaces: %w", err)
	}
	return found, nil
}

// bridgeMAC is the hardware address of a cluster's bridge. It tells whose the
// bridge is, because unlike an alias it is there from the first instant. That
// it is fixed is needed anyway: a bridge otherwise takes its lowest port's
// address, and pods would lose their gateway whenever that port goes.
func (l layout) bridgeMAC() string {
	sum := sha256.Sum256([]byte(l.root))
	// 02 marks an address that was assigned locally.
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}.String()
}

// findBridge returns the bridge; ok is false if there is none.
func findBridge(ctx context.Context) (l link, ok bool, err error) {
	all, err := listLinks(ctx)
	if err != nil {
		return link{}, false, fmt.Errorf("find bridge: %w", err)
	}
	i := slices.IndexFunc(all, func(l link) bool { return l.Name == bridge })
	if i < 0 {
		return link{}, false, nil
	}
	return all[i], true, nil
}

// findOverlap names the interface that already uses part of the cluster's address
// ranges, or returns "".
func findOverlap(all []link) string {
	for _, l := range all {
		if l.Name == bridge {
			continue
		}
		for _, a := range l.Addresses {
			address, err := netip.ParseAddr(a.Local)
			if err != nil {
				continue
			}
			used := netip.PrefixFrom(address, a.Length)
			for _, ours := range []string{podRange, serviceRange} {
				if netip.MustParsePrefix(ours).Overlaps(used) {
					return fmt.Sprintf("%s has %s, inside %s", l.Name, used, ours)
				}
			}
		}
	}
	return ""
}

// createNetwork makes the bridge with its addresses and routes, and prepares
// the kernel for Services.
func (c *Cluster) createNetwork(ctx context.Context) error {
	found, exists, err := findBridge(ctx)
	if err != nil {
		return err
	}
	if exists && found.MAC != c.layout.bridgeMAC() {
		return fmt.Errorf("create bridge %s: it exists and belongs to a cluster in %q; only one local cluster runs at a time, the other is stopped with: localcluster down --dir %s", bridge, found.Alias, found.Alias)
	}
	all, err := listLinks(ctx)
	if err != nil {
		return fmt.Errorf("check address ranges: %w", err)
	}
	if used := findOverlap(all); used != "" {
		return fmt.Errorf("check address ranges: %s, which the local cluster needs for itself", used)
	}
	if !exists {
		if _, err := run(ctx, "ip", "link", "add", "name", bridge, "address", c.layout.bridgeMAC(), "type", "bridge"); err != nil {
			return fmt.Errorf("create bridge: %w", err)
		}
	}
	steps := [][]string{
		{"link", "set", bridge, "up", "alias", c.layout.root}, // the alias is for people
		{"address", "replace", gateway + "/16", "dev", bridge},
	}
	for _, n := range listNodes() {
		steps = append(steps, []string{"address", "replace", n.Address + "/32", "dev", bridge})
	}
	// The host's packets to a Service need some route before they are rewritten;
	// this one also gives them the bridge's address as source.
	steps = append(steps, []string{"route", "replace", serviceRange, "dev", bridge, "src", gateway})
	for _, s := range steps {
		if _, err := run(ctx, "ip", s...); err != nil {
			return fmt.Errorf("configure bridge: %w", err)
		}
	}
	return c.layout.setSysctls()
}

// removeNetwork deletes the bridge with its ports, and kube-proxy's tables.
func (c *Cluster) removeNetwork(ctx context.Context) error {
	var errs []error
	found, exists, err := findBridge(ctx)
	errs = append(errs, err)
	if exists && found.MAC == c.layout.bridgeMAC() {
		ports, err := listLinks(ctx, "master", bridge)
		errs = append(errs, err)
		for _, p := range ports {
			// Ports vanish by themselves when the kernel gets to destroying their
			// network namespace, so one that is gone already is fine.
			if _, err := run(ctx, "ip", "link", "delete", p.Name); err != nil && !strings.Contains(err.Error(), "Cannot find device") {
				errs = append(errs, err)
			}
		}
		if _, err := run(ctx, "ip", "link", "delete", bridge); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := os.Stat(c.layout.logFile("kube-proxy")); err == nil { // it ran, so the tables are its
		for _, family := range []string{"ip", "ip6"} {
			if _, err := run(ctx, "nft", "delete", "table", family, proxyTable); err != nil && !strings.Contains(err.Error(), "No such file") {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// checkForeign refuses a machine that already is part of another Kubernetes:
// kube-proxy's tables and the directory of device plugins cannot be moved, so
// the two would take them from each other.
func (c *Cluster) checkForeign(ctx context.Context) error {
	kubelets, err := listProcesses(func(pid int) bool {
		args := procFields(pid, "cmdline")
		return len(args) > 0 && filepath.Base(args[0]) == "kubelet" && !c.processes.belongsToCluster(pid, "")
	})
	if err != nil {
		return fmt.Errorf("look for another Kubernetes: %w", err)
	}
	if len(kubelets) > 0 {
		return fmt.Errorf("look for another Kubernetes: process %d is a kubelet that this cluster did not start; the local cluster needs a machine of its own", kubelets[0].PID)
	}
	if _, err := os.Stat(c.layout.logFile("kube-proxy")); err == nil {
		return nil // the tables are its own
	}
	out, err := run(ctx, "nft", "list", "tables")
	if err != nil {
		return fmt.Errorf("look for another Kubernetes: %w", err)
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 && f[2] == proxyTable {
			return fmt.Errorf("look for another Kubernetes: nftables has table %q that this cluster did not make; if nothing else uses it, remove it with: nft delete table %s %s", proxyTable, f[1], f[2])
		}
	}
	return nil
}

// sysctl is a kernel setting; path is below /proc/sys.
type sysctl struct{ path, value string }

const sysctlDir = "/proc/sys"

// watchedSysctls are settings that this package or a kubelet changes: their
// old values are kept for down.
func watchedSysctls() []string {
	return []string{
		"net/bridge/bridge-nf-call-iptables",
		"vm/overcommit_memory", "vm/panic_on_oom",
		"kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

func (l layout) setSysctls() error {
	if err := l.saveSysctls(); err != nil {
		return err
	}
	for _, s := range []sysctl{
		// Only what comes in from pods is forwarded; the host stays no router.
		{"net/ipv4/conf/" + bridge + "/forwarding", "1"},
		{"net/ipv4/conf/" + bridge + "/send_redirects", "0"},
		// Answers between two pods on the bridge must pass the rewriting of
		// Services on their way back.
		{"net/bridge/bridge-nf-call-iptables", "1"},
	} {
		file := filepath.Join(sysctlDir, s.path)
		if err := os.WriteFile(file, []byte(s.value), 0o644); err != nil {
			return fmt.Errorf("set kernel setting %s: %w", s.path, err)
		}
	}
	return nil
}

// saveSysctls keeps the values from before the first change.
func (l layout) saveSysctls() error {
	if _, err := os.Stat(l.sysctls()); err == nil {
		return nil
	}
	saved := map[string]string{}
	for _, p := range watchedSysctls() {
		value, err := os.ReadFile(filepath.Join(sysctlDir, p))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read kernel setting %s: %w", p, err)
		}
		saved[p] = strings.TrimSpace(string(value))
	}
	content, err := json.Marshal(saved)
	if err != nil {
		return fmt.Errorf("encode kernel settings: %w", err)
	}
	return writeFile(l.sysctls(), content, 0o644)
}

// restoreSysctls puts the old values back.
func (l layout) restoreSysctls() error {
	content, err := os.ReadFile(l.sysctls())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read saved kernel settings: %w", err)
	}
	saved := map[string]string{}
	if err := json.Unmarshal(content, &saved); err != nil {
		return fmt.Errorf("parse saved kernel settings: %w", err)
	}
	var errs []error
	for p, old := range saved {
		file := filepath.Join(sysctlDir, p)
		if now, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(now)) == old {
			continue
		}
		errs = append(errs, os.WriteFile(file, []byte(old), 0o644))
	}
	return errors.Join(errs...)
}

// bridgeFilter makes sure that bridged packets can pass the rewriting of
// Services; on most kernels that is a module.
func bridgeFilter(ctx context.Context) error {
	file := filepath.Join(sysctlDir, "net/bridge/bridge-nf-call-iptables")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	_, loadErr := run(ctx, "modprobe", "br_netfilter")
	if _, err := os.Stat(file); err != nil {
		return errors.Join(fmt.Errorf("prepare bridge: this kernel has no br_netfilter: %w", err), loadErr)
	}
	return nil
}
