package rig

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqljob"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqlrun"
)

// badSQL is part of the SQL that no database takes.
const badSQL = "NONSENSE"

// isOver reports whether nothing of a pod runs any more, or ever will.
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// runSQL plays the program of a Job of spec.sql, whose command line is read as the
// program reads it: it waits for what it mounts, and fails of bad SQL. The databases
// here speak no SQL.
func (a *actor) runSQL(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if left := a.wait(pod, "start", a.delays.Start); left > 0 {
		return left, nil
	}
	run, err := sqlrun.Parse(pod.Spec.Containers[0].Args)
	if err != nil {
		return 0, a.patchStatus(ctx, pod, endedPod(pod, err.Error(), true))
	}
	if pod.Status.PodIP == "" {
		return again, a.patchStatus(ctx, pod, runningPod(pod, facts{ip: a.addresses.next(), ready: true}))
	}
	text, there, err := a.sqlOf(ctx, pod)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return again, nil
	case strings.Contains(text, badSQL):
		return 0, a.patchStatus(ctx, pod, endedPod(pod, "statement 1 of 1: error 1064 (42000): bad SQL in "+run.Of, true))
	}
	return 0, a.patchStatus(ctx, pod, endedPod(pod, "", false))
}

// sqlOf returns what is mounted for the program, and whether there is anything.
func (a *actor) sqlOf(ctx context.Context, pod *corev1.Pod) (text string, there bool, err error) {
	for _, v := range pod.Spec.Volumes {
		key := types.NamespacedName{Namespace: pod.Namespace}
		data := map[string]string{}
		var items []corev1.KeyToPath
		switch {
		case v.Name != "sql":
			continue
		case v.ConfigMap != nil:
			var c corev1.ConfigMap
			key.Name, items = v.ConfigMap.Name, v.ConfigMap.Items
			err = a.live.Get(ctx, key, &c)
			data = c.Data
		case v.Secret != nil:
			var s corev1.Secret
			key.Name, items = v.Secret.SecretName, v.Secret.Items
			err = a.live.Get(ctx, key, &s)
			for name, value := range s.Data {
				data[name] = string(value)
			}
		}
		if client.IgnoreNotFound(err) != nil {
			return "", false, fmt.Errorf("get what pod %s mounts: %w", pod.Name, err)
		}
		for name, value := range data {
			if len(items) == 0 || items[0].Key == name {
				text, there = text+value, true
			}
		}
	}
	return text, there, nil
}

// endedPod returns the pod of a Job with a program that has ended and left a message.
func endedPod(pod *corev1.Pod, message string, failed bool) *corev1.Pod {
	out := pod.DeepCopy()
	ended := &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now(), Message: message}
	out.Status.Phase = corev1.PodSucceeded
	if failed {
		ended.Reason, ended.ExitCode = "Error", 1
		out.Status.Phase = corev1.PodFailed
	}
	setPodCondition(out, corev1.PodReady, corev1.ConditionFalse, "PodCompleted", "")
	out.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: ended}}}
	return out
}

// runsSQL reports whether a pod is of a Job of spec.sql.
func runsSQL(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.LabelComponent] == sqljob.Component }
