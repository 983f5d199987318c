package storage_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
)

func bound(requested, capacity string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(requested)}
	c.Status.Phase = corev1.ClaimBound
	if capacity != "" {
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	}
	return c
}

func TestProgressIsReadFromTheClaimWhileItsVolumeIsTooSmall(t *testing.T) {
	with := func(kind corev1.PersistentVolumeClaimConditionType, status corev1.ConditionStatus) *corev1.PersistentVolumeClaim {
		c := bound("2Gi", "1Gi")
		c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
			{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue}, {Type: kind, Status: status},
		}
		return c
	}
	at := func(status corev1.ClaimResourceStatus) *corev1.PersistentVolumeClaim {
		c := bound("2Gi", "1Gi")
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
		return c
	}
	pending := bound("2Gi", "1Gi")
	pending.Status.Phase = corev1.ClaimPending
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  storage.Progress
	}{
		"of the size that is asked for":         {bound("1Gi", "1Gi"), storage.Progress{}},
		"larger than asked for":                 {bound("1Gi", "2Gi"), storage.Progress{}},
		"of a size that is not known":           {bound("1Gi", ""), storage.Progress{}},
		"not bound":                             {pending, storage.Progress{}},
		"too small, and not begun":              {bound("2Gi", "1Gi"), storage.Progress{Change: "Resizing"}},
		"the kubelet's turn":                    {with(corev1.PersistentVolumeClaimFileSystemResizePending, corev1.ConditionTrue), storage.Progress{Change: "FileSystemResizePending"}},
		"the driver fails, and is tried again":  {with(corev1.PersistentVolumeClaimControllerResizeError, corev1.ConditionTrue), storage.Progress{Change: "ControllerResizeError", Failed: true}},
		"the kubelet fails":                     {with(corev1.PersistentVolumeClaimNodeResizeError, corev1.ConditionTrue), storage.Progress{Change: "NodeResizeError", Failed: true}},
		"the driver has failed, and is over it": {with(corev1.PersistentVolumeClaimControllerResizeError, corev1.ConditionFalse), storage.Progress{Change: "Resizing"}},
		"the driver has given up":               {at(corev1.PersistentVolumeClaimControllerResizeInfeasible), storage.Progress{Change: "ControllerResizeError", Failed: true}},
		"the kubelet has given up":              {at(corev1.PersistentVolumeClaimNodeResizeInfeasible), storage.Progress{Change: "NodeResizeError", Failed: true}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, storage.ProgressOf(c.claim)) })
	}
}

// VOL-01: of a volume that has the size already, such as a PersistentVolume that a user made, nothing is asked:
// Kubernetes refuses that without a StorageClass that allows it, and it would change nothing.
func TestAClaimAsksForTheSizeThatItsVolumeLacks(t *testing.T) {
	for name, c := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		wanted string
		want   bool
	}{
		"more than its volume has":                {bound("1Gi", "1Gi"), "2Gi", true},
		"more than its larger volume has":         {bound("1Gi", "2Gi"), "3Gi", true},
		"what its volume has":                     {bound("1Gi", "2Gi"), "2Gi", false},
		"less than its volume has":                {bound("1Gi", "3Gi"), "2Gi", false},
		"more, of a volume of unknown size":       {bound("1Gi", ""), "2Gi", true},
		"less again, before its volume has grown": {bound("4Gi", "1Gi"), "2Gi", true},
		"less again, after its volume has grown":  {bound("4Gi", "4Gi"), "2Gi", false},
		"less, of a volume of unknown size":       {bound("4Gi", ""), "2Gi", false},
		"what it asks for":                        {bound("2Gi", "1Gi"), "2Gi", false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, storage.NeedsResize(c.claim, resource.MustParse(c.wanted)))
		})
	}
}

// The texts are those of Kubernetes' admission plugins.
func TestARefusedVolumeChangeNamesItsCauseAndRemedy(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data-a-0", errors.New(text))
	}
	claim := bound("1Gi", "1Gi")
	claim.Namespace, claim.Name, claim.Spec.StorageClassName = "ns", "data-a-0", ptr.To("fast")
	for name, c := range map[string]struct {
		err    error
		reason string
		says   []string
	}{
		"a quota": {forbidden("exceeded quota: disk, requested: requests.storage=1Gi, used: requests.storage=3Gi, limited: requests.storage=3Gi"), v1alpha1.ReasonQuotaExceeded,
			[]string{"ResourceQuota disk", "claim data-a-0", "adds requests.storage=1Gi", "the limit is requests.storage=3Gi", "kubectl -n ns edit resourcequota disk", "set storage back"}},
		"a quota of several things": {forbidden("exceeded quota: q, requested: persistentvolumeclaims=1,requests.storage=1Gi, used: persistentvolumeclaims=2,requests.storage=2Gi, limited: persistentvolumeclaims=2,requests.storage=2Gi"), v1alpha1.ReasonQuotaExceeded,
			[]string{"adds persistentvolumeclaims=1,requests.storage=1Gi, the limit is persistentvolumeclaims=2,requests.storage=2Gi"}},
		"a limit": {forbidden("maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"), v1alpha1.ReasonLimitRangeExceeded,
			[]string{"maximum of 1Gi", "ask for 2Gi", "kubectl -n ns get limitrange"}},
		"two limits": {forbidden("[maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi, maximum storage usage per PersistentVolumeClaim is 1500Mi, but request is 2Gi]"), v1alpha1.ReasonLimitRangeExceeded,
			[]string{"maximum of 1Gi"}},
		"a class": {forbidden("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"), v1alpha1.ReasonClaimRejected,
			[]string{"allowVolumeExpansion: true"}},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := storage.RefusalOf(claim, nil, "spec.volumes", c.err)
			require.NotNil(t, refusal)
			assert.Equal(t, c.reason, refusal.Reason)
			for _, words := range c.says {
				assert.Contains(t, refusal.Message, words)
			}
			assert.NotContains(t, refusal.Message, "used", "what others use changes by itself")
		})
	}
	assert.Nil(t, storage.RefusalOf(claim, nil, "spec.volumes", forbidden("not allowed by policy")))
	assert.Nil(t, storage.QuotaOf(forbidden("not allowed by policy")))
	assert.Equal(t, &storage.Quota{Name: "q", Adds: "cpu=2,pods=1", Used: "cpu=3,pods=2", Limit: "cpu=4,pods=9"}, storage.QuotaOf(forbidden("exceeded quota: q, requested: cpu=2,pods=1, used: cpu=3,pods=2, limited: cpu=4,pods=9")))
	assert.Nil(t, storage.RefusalOf(claim, nil, "spec.volumes", errors.New("timeout")))
}

func TestAVolumeAttributesClassIsProgressUntilTheVolumeHasIt(t *testing.T) {
	with := func(asked, has string, state *corev1.ModifyVolumeStatus) *corev1.PersistentVolumeClaim {
		c := bound("1Gi", "1Gi")
		c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName = &asked, &has
		c.Status.ModifyVolumeStatus = state
		return c
	}
	infeasible := func(target string) *corev1.ModifyVolumeStatus {
		return &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: target, Status: corev1.PersistentVolumeClaimModifyVolumeInfeasible}
	}
	growing := with("gold", "", infeasible("gold"))
	growing.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  storage.Progress
	}{
		"it has it":                          {with("gold", "gold", nil), storage.Progress{}},
		"none is asked for":                  {with("", "gold", nil), storage.Progress{}},
		"it has not begun":                   {with("gold", "", nil), storage.Progress{Change: "ModifyingVolume"}},
		"the driver calls it infeasible":     {with("gold", "", infeasible("gold")), storage.Progress{Change: "ModifyVolumeError", Failed: true}},
		"the one before was infeasible":      {with("gold", "", infeasible("silver")), storage.Progress{Change: "ModifyingVolume"}},
		"a failure tells more than a growth": {growing, storage.Progress{Change: "ModifyVolumeError", Failed: true}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, storage.ProgressOf(c.claim)) })
	}
}
