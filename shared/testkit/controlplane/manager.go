package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// controllerNames are what every controller manager runs here.
func controllerNames() []string {
	return []string{
		"garbage-collector-controller",
		"namespace-controller",
		"persistentvolumeclaim-protection-controller",
		"serviceaccount-controller",
	}
}

// process is a child of ours.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// stop asks the process to end, and kills it when it takes longer than timeout.
func (p *process) stop(timeout time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.cmd.Path, err)
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case <-p.done:
		return nil
	case <-deadline.C:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.cmd.Path, err)
	}
	<-p.done // a killed process ends
	return nil
}

// startManager starts kube-controller-manager and returns when it works: when
// the namespace "default" has its service account, which one of its controllers
// creates. It opens no port, so that nothing can collide.
func (cp *ControlPlane) startManager(ctx context.Context, program string, further []string) error {
	log, err := cp.openLog("kube-controller-manager")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(program,
		"--kubeconfig="+cp.Kubeconfig,
		"--controllers="+strings.Join(append(controllerNames(), further...), ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	manager := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(manager.done)
	}()
	cp.manager = manager
	if err := cp.guardian.note("kube-controller-manager", cmd.Process.Pid); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := cp.awaitDefaultAccount(ctx, manager.done); err != nil {
		return fmt.Errorf("wait for kube-controller-manager to create service account default/default: %w", err)
	}
	return nil
}

func (cp *ControlPlane) awaitDefaultAccount(ctx context.Context, ended <-chan struct{}) error {
	clients, err := kubernetes.NewForConfig(cp.Config)
	if err != nil {
		return err
	}
	// A watch without a version begins with what exists.
	events, err := clients.CoreV1().ServiceAccounts("default").Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", "default").String(),
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case event, open := <-events.ResultChan():
			switch {
			case !open:
				return errors.New("the watch ended")
			case event.Type == watch.Added:
				return nil
			}
		case <-ended:
			return errors.New("the process ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
