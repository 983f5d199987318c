package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/e2e/model/pdsim"
	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
)

// badImage is part of the name of every image that can't be pulled.
const badImage = "bad"

// process is what runs in a pod.
type process struct {
	pod  types.UID
	node string
	ip   string
	stop func() error
	// handover runs a command of the hooks of the pod; nil for one without.
	handover func(context.Context, *corev1.LifecycleHandler) error
	// copy is the program of a Job that copies a database; nil for others.
	copy *copyRun
	// config that the process runs with, nil if it is not asked for.
	config *settings.Config
}

// run brings a scheduled pod from Pending to Ready, as far as it can get.
func (a *actor) run(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if left := a.wait(pod, "start", a.delays.Start); left > 0 {
		return left, nil
	}
	down, restarts, err := a.crashed(pod)
	if err != nil {
		return 0, err
	}
	switch {
	case down > 0 && pod.Status.PodIP == "": // it has never run
		return down, a.patchStatus(ctx, pod, waitingPod(pod, "CrashLoopBackOff", ""))
	case down > 0:
		return down, a.patchStatus(ctx, pod, runningPod(pod, facts{ip: pod.Status.PodIP, restarts: restarts, crashed: true}))
	}
	reason, message, err := a.obstacle(ctx, pod)
	if err != nil {
		return 0, err
	}
	if reason != "" {
		return 0, a.patchStatus(ctx, pod, waitingPod(pod, reason, message))
	}
	running, startErr, err := a.start(ctx, pod)
	switch {
	case err != nil:
		return 0, err
	case startErr != nil && a.isLost(pod.Spec.NodeName):
		return 0, nil // its kubelet reports nothing
	case errors.Is(startErr, pdsim.ErrUnhealthy):
		a.refused(pod.UID)
		return again, a.patchStatus(ctx, pod, waitingPod(pod, "CrashLoopBackOff", ""))
	case startErr != nil:
		return again, a.patchStatus(ctx, pod, waitingPod(pod, "CrashLoopBackOff", ""))
	}
	left := a.wait(pod, fmt.Sprint("ready", restarts), a.delays.Ready)
	if err := a.patchStatus(ctx, pod, runningPod(pod, facts{ip: running.ip, restarts: restarts, ready: left == 0})); err != nil {
		return 0, err
	}
	if a.crashes(pod.UID) {
		return again, nil
	}
	return left, nil
}

// obstacle says what keeps the containers of a pod from being created.
func (a *actor) obstacle(ctx context.Context, pod *corev1.Pod) (reason, message string, err error) {
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: v.ConfigMap.Name}, &corev1.ConfigMap{})
		switch {
		case apierrors.IsNotFound(err):
			return "ContainerCreating", "", nil
		case err != nil:
			return "", "", fmt.Errorf("get ConfigMap %s: %w", v.ConfigMap.Name, err)
		}
	}
	for i := range pod.Spec.Containers {
		for _, e := range pod.Spec.Containers[i].Env {
			if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
				continue
			}
			name := e.ValueFrom.SecretKeyRef.Name
			err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &corev1.Secret{})
			switch {
			case apierrors.IsNotFound(err):
				return "CreateContainerConfigError", fmt.Sprintf("secret %q not found", name), nil
			case err != nil:
				return "", "", fmt.Errorf("get Secret %s: %w", name, err)
			}
		}
		if strings.Contains(pod.Spec.Containers[i].Image, badImage) {
			return "ImagePullBackOff", "", nil
		}
	}
	return "", "", nil
}

// start starts a pod's process unless it runs. failed is what the process ends
// with.
func (a *actor) start(ctx context.Context, pod *corev1.Pod) (running *process, failed, err error) {
	key := client.ObjectKeyFromObject(pod)
	a.mu.Lock()
	running = a.processes[key]
	a.mu.Unlock()
	if running != nil {
		return running, nil, nil
	}
	claim, err := a.data(ctx, pod)
	if err != nil {
		return nil, nil, err
	}
	as := a.role(pod)
	running = &process{pod: pod.UID, node: pod.Spec.NodeName, stop: func() error { return nil }}
	if begin := a.starters()[as.component]; begin != nil {
		db, err := a.databases.Of(as.database)
		if err != nil {
			return nil, nil, err
		}
		if failed, err = begin(ctx, launch{pod: pod, db: db, foreign: as.foreign, claim: claim, process: running}); err != nil {
			return nil, nil, err
		}
	}
	if failed != nil {
		return nil, failed, nil
	}
	if running.ip == "" {
		running.ip = cmp.Or(pod.Status.PodIP, a.addresses.next())
	}
	a.mu.Lock()
	_, lost := a.lost[running.node]
	if !lost {
		a.processes[key] = running
	}
	a.mu.Unlock()
	if lost {
		return nil, errNodeLost, running.stop()
	}
	return running, nil, nil
}

// data returns the claim that holds a pod's data, empty if it has none.
func (a *actor) data(ctx context.Context, pod *corev1.Pod) (types.UID, error) {
	claims := claimNames(pod)
	if len(claims) == 0 {
		return "", nil
	}
	var claim corev1.PersistentVolumeClaim
	if err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: claims[0]}, &claim); err != nil {
		return "", fmt.Errorf("get claim %s: %w", claims[0], err)
	}
	return claim.UID, nil
}
