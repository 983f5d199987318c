package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// nextVariable names, in the environment of the next version's operators, what
// they render otherwise.
const nextVariable = "TIDB_GROUPS_NEXT"

// edit is one change of the source of the next version.
type edit struct{ file, old, new string }

// nextEdits are what the next version renders otherwise: pods, files, claims or
// Services.
func nextEdits() []edit {
	differs := func(what string) string { return fmt.Sprintf("os.Getenv(%q) == %q", nextVariable, what) }
	return []edit{
		{"shared/workload/pod.go", "import (\n", "import (\n\t\"os\"\n"},
		{"shared/workload/pod.go", "\tfor _, e := range spec.Env {\n",
			"\tif " + differs("pods") + " {\n\t\tenv = append(env, corev1.EnvVar{Name: \"NEXT\", Value: \"1\"})\n\t}\n\tfor _, e := range spec.Env {\n"},
		{"shared/workload/pod.go", "\tfor _, v := range spec.Volumes {\n\t\tout = append(out, v1alpha1.VolumeClaimTemplate{",
			"\tfor _, v := range spec.Volumes {\n\t\tif " + differs("claims") + " {\n\t\t\tv.Storage.Add(v.Storage)\n\t\t}\n\t\tout = append(out, v1alpha1.VolumeClaimTemplate{"},
		{"shared/workload/service.go", "import (\n", "import (\n\t\"os\"\n"},
		{"shared/workload/service.go", "func servicePorts(ports []Port, overrides []v1alpha1.ServicePort) []corev1.ServicePort {\n",
			"func servicePorts(ports []Port, overrides []v1alpha1.ServicePort) []corev1.ServicePort {\n\tif " + differs("services") +
				" {\n\t\tports = append([]Port{{Name: \"next\", Number: 9999}}, ports...)\n\t}\n"},
		{"shared/tomlconfig/tree.go", "import (\n", "import (\n\t\"os\"\n"},
		{"shared/tomlconfig/tree.go", "\treturn string(text), nil\n", "\tif " + differs("files") + " {\n\t\ttext = append(text, \"# next\\n\"...)\n\t}\n\treturn string(text), nil\n"},
	}
}

// RunOperators runs all operators in a namespace until the context ends, which is
// what the program of the next version does. pd is where PD answers, a URL.
func RunOperators(ctx context.Context, kubeconfig, namespace, pd string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	flags := operator.Flags{
		Namespaces: namespace, MetricsAddress: "0", ProbeAddress: "0", Concurrency: 8,
		ReconcileTimeout: time.Minute, ClientQPS: -1, LogLevel: "error", LogFormat: "text", PDURL: pd,
	}
	ends := make(chan error)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, d := range rig.Definitions() {
		go func() { ends <- operator.Run(ctx, cfg, d, flags) }()
	}
	var out error
	for range rig.Definitions() {
		out = errors.Join(out, <-ends)
		cancel() // one that ends ends all
	}
	return out
}

// BuildNext builds the program of the next version of the operators, which is
// this one with other renderings, into a directory, and returns its path.
// Nothing of the tree is changed: the compiler is given the changed files.
func BuildNext(ctx context.Context, root, dir string) (string, error) {
	changed := map[string]string{}
	for _, e := range nextEdits() {
		text, known := changed[e.file]
		if !known {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
			if err != nil {
				return "", fmt.Errorf("read source of next version: %w", err)
			}
			text = string(raw)
		}
		if strings.Count(text, e.old) != 1 {
			return "", fmt.Errorf("change %s for the next version: %q is not there once: adapt nextEdits in e2e/campaign", e.file, e.old)
		}
		changed[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	var table struct{ Replace map[string]string }
	table.Replace = map[string]string{}
	for file, text := range changed {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write source of next version: %w", err)
		}
		table.Replace[filepath.Join(root, filepath.FromSlash(file))] = to
	}
	raw, err := json.Marshal(table)
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	overlay, out := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "next")
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", out, "./cmd/campaign")
	cmd.Dir = filepath.Join(root, "e2e")
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build next version: %w: %s", err, said)
	}
	return out, nil
}
