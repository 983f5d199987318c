package rig

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/drain"
)

// startTiCDC starts the process of a TiCDC capture. One that ends with tables that it could
// have handed over raises an alarm.
func (a *actor) startTiCDC(ctx context.Context, l launch) (failed, err error) {
	if !l.db.Serves() {
		return errNoPD, nil
	}
	port, err := openStatusPort(ctx, a.addresses, l.pod.Status.PodIP, v1alpha1.PortTiCDC, l.db.Captures.API(l.pod.Name))
	if err != nil {
		return nil, err
	}
	l.db.Captures.Start(l.pod.Name)
	l.process.ip = port.ip
	l.process.stop = func() error {
		port.close()
		if left := l.db.Captures.Stop(l.pod.Name); left != "" {
			l.db.Raise(model.NotHandedOver, left)
		}
		return nil
	}
	l.process.handover = func(ctx context.Context, handler *corev1.LifecycleHandler) error {
		if handler == nil || handler.Exec == nil || filepath.Base(handler.Exec.Command[0]) != "drain-capture" {
			return nil
		}
		command, err := drain.Parse(handler.Exec.Command[1:], nil)
		if err != nil {
			return err
		}
		command.Job.API = fmt.Sprintf("http://%s:%d", port.ip, v1alpha1.PortTiCDC)
		command.Job.Within = a.delays.seconds(int64(command.Job.Within / time.Second))
		command.Job.Poll = hookPoll
		return command.Run(ctx, nil)
	}
	return nil, nil
}
