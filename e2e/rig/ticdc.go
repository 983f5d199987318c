package rig

import (
	"context"
	"fmt"
	"strings"

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
	port, err := openStatusPort(ctx, a.door(l.pod), v1alpha1.PortTiCDC, l.db.Captures.API(l.pod.Name))
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
	l.process.handover = hookRunner(map[string]program{"drain-capture": func(ctx context.Context, args []string) error {
		command, err := drain.Parse(args, podVariables(l.pod))
		if err != nil {
			return err
		}
		if command.Job.TLS, err = a.files(ctx, l.pod, command.Job.TLS, ""); err != nil {
			return err
		}
		scheme, _, _ := strings.Cut(command.Job.API, ":")
		command.Job.API = fmt.Sprintf("%s://%s:%d", scheme, port.ip, v1alpha1.PortTiCDC)
		command.Job.Within, command.Job.Poll = a.faster(command.Job.Within), hookPoll
		return command.Run(ctx, nil)
	}})
	return nil, nil
}
