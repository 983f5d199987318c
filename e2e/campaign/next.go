package campaign

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidb-groups/tidb-groups/e2e/overlay"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// nextVariable names, in the environment of the next version's operators, what
// they render otherwise.
const nextVariable = "TIDB_GROUPS_NEXT"

// nextEdits are what the next version renders otherwise: pods, files, claims or
// Services.
func nextEdits() []overlay.Edit {
	differs := func(what string) string { return fmt.Sprintf("os.Getenv(%q) == %q", nextVariable, what) }
	const imports = "import (\n"
	in := func(file, old, next string) overlay.Edit { return overlay.Edit{File: file, Old: old, New: next} }
	return []overlay.Edit{
		in("shared/workload/pod.go", imports, imports+"\t\"os\"\n"),
		in("shared/workload/pod.go", "\tfor _, e := range spec.Env {\n",
			"\tif "+differs("pods")+" {\n\t\tenv = append(env, corev1.EnvVar{Name: \"NEXT\", Value: \"1\"})\n\t}\n\tfor _, e := range spec.Env {\n"),
		in("shared/workload/pod.go", "\tfor _, v := range spec.Volumes {\n\t\tout = append(out, v1alpha1.VolumeClaimTemplate{",
			"\tfor _, v := range spec.Volumes {\n\t\tif "+differs("claims")+" {\n\t\t\tv.Storage.Add(v.Storage)\n\t\t}\n\t\tout = append(out, v1alpha1.VolumeClaimTemplate{"),
		in("shared/workload/service.go", imports, imports+"\t\"os\"\n"),
		in("shared/workload/service.go", "func servicePorts(ports []Port, overrides []v1alpha1.ServicePort) []corev1.ServicePort {\n",
			"func servicePorts(ports []Port, overrides []v1alpha1.ServicePort) []corev1.ServicePort {\n\tif "+differs("services")+
				" {\n\t\tports = append([]Port{{Name: \"next\", Number: 9999}}, ports...)\n\t}\n"),
		in("shared/tomlconfig/tree.go", imports, imports+"\t\"os\"\n"),
		in("shared/tomlconfig/tree.go", "\treturn string(text), nil\n", "\tif "+differs("files")+" {\n\t\ttext = append(text, \"# next\\n\"...)\n\t}\n\treturn string(text), nil\n"),
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
		go func() { ends <- operator.Run(ctx, cfg, operator.NewProgram(d), flags) }()
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
	changed, err := overlay.Apply(root, nextEdits())
	if err != nil {
		return "", fmt.Errorf("change source for the next version: %w: adapt nextEdits in e2e/campaign", err)
	}
	table, err := overlay.Write(root, dir, changed)
	if err != nil {
		return "", fmt.Errorf("change source for the next version: %w", err)
	}
	out := filepath.Join(dir, "next")
	if err := overlay.RunGo(ctx, root, "e2e", "build", "-overlay", table, "-o", out, "./cmd/campaign"); err != nil {
		return "", fmt.Errorf("build next version: %w", err)
	}
	return out, nil
}
