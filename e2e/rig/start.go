package rig

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
)

// launch is what the process of a pod is started with.
type launch struct {
	pod *corev1.Pod
	db  *Database
	// foreign says that another operator has made the pod, whose arguments say nothing.
	foreign bool
	// claim that its data is on, empty if it keeps none.
	claim types.UID
	// process is filled in.
	process *process
}

// starter starts the process of a pod. failed is what the process ends with.
type starter func(ctx context.Context, l launch) (failed, err error)

// starters are how the process of each component is started.
func (a *actor) starters() map[string]starter {
	return map[string]starter{
		v1alpha1.ComponentPD:      a.startPD,
		v1alpha1.ComponentTiKV:    a.startTiKV,
		v1alpha1.ComponentTiFlash: a.startTiFlash,
		v1alpha1.ComponentTiDB:    a.startTiDB,
		v1alpha1.ComponentTiProxy: a.startTiProxy,
		v1alpha1.ComponentTiCDC:   a.startTiCDC,
	}
}

func (a *actor) startPD(ctx context.Context, l launch) (failed, err error) {
	config, err := a.settings(ctx, l.pod)
	if err != nil {
		return nil, err
	}
	initial, err := a.initial(ctx, l)
	if err != nil {
		return nil, err
	}
	status, err := openStatusPort(ctx, a.door(l.pod), v1alpha1.PortPDClient, l.db.ServeMember(l.pod.Name))
	if err != nil {
		return nil, err
	}
	if failed = l.db.StartMember(Member{
		Name: l.pod.Name, Claim: l.claim, InitialCluster: initial, Force: containerArguments(l.pod)["--force-new-cluster"] == "true", Config: config,
		TLS: a.identity(l.pod),
	}); failed != nil {
		status.close()
		return failed, nil
	}
	l.process.ip = status.ip
	l.process.stop = func() error { status.close(); return l.db.StopMember(l.pod.Name, a.isLost(l.process.node)) }
	l.process.handover = a.hook(l.pod, l.db, l.claim)
	return nil, nil
}

func (a *actor) startTiKV(ctx context.Context, l launch) (failed, err error) {
	if failed, err = a.configure(ctx, l.pod, l.process, settings.NewTiKV); failed != nil || err != nil {
		return failed, err
	}
	status, err := openStatusPort(ctx, a.door(l.pod), v1alpha1.PortTiKVStatus, tikvPort(l.process.config))
	if err != nil {
		return nil, err
	}
	if failed = l.db.StartStore(Store{Claim: l.claim, Address: l.advertised(), Version: imageVersion(l.pod)}); failed != nil {
		status.close()
		return failed, nil
	}
	port, err := openStorePort(ctx, door{a.addresses, status.ip, a.identity(l.pod)}, l.db, l.claim)
	if err == nil && port.ip != status.ip {
		port.close()
		err = errors.New("another process has the store's port")
	}
	if err != nil {
		status.close()
		l.db.StopStore(l.claim)
		return nil, err
	}
	l.process.ip = port.ip
	l.process.stop = func() error { status.close(); port.close(); l.db.StopStore(l.claim); return nil }
	l.process.handover = a.hook(l.pod, l.db, l.claim)
	if failed = l.process.handover(ctx, postStart(l.pod)); failed != nil {
		return failed, l.process.stop() // as the kubelet does
	}
	return nil, nil
}

func (a *actor) startTiDB(ctx context.Context, l launch) (failed, err error) {
	if !l.db.Serves() {
		return errNoPD, nil
	}
	if failed, err = a.configure(ctx, l.pod, l.process, settings.NewTiDB); failed != nil || err != nil {
		return failed, err
	}
	port, err := openStatusPort(ctx, a.door(l.pod), v1alpha1.PortTiDBStatus, tidbPort(&l.db.Servers, l.process.config))
	if err != nil {
		return nil, err
	}
	l.db.Servers.Start(l.pod.Name, imageVersion(l.pod))
	l.process.ip = port.ip
	l.process.stop = func() error { port.close(); l.db.Servers.Stop(l.pod.Name); return nil }
	return nil, nil
}
