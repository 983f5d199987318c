package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const (
	// Provisioner is the name in the StorageClass. Kubernetes' own host-path
	// provisioner is not used: its volumes belong to root and ignore fsGroup, so
	// that nothing could run in them as an ordinary user.
	Provisioner = "local.tidb-groups.dev"
	// volumesUser is whom the provisioner is to kube-apiserver.
	volumesUser = "tidb-groups-local-volumes"

	provisionedBy      = "pv.kubernetes.io/provisioned-by"
	storageProvisioner = "volume.kubernetes.io/storage-provisioner"
	regionLabel        = "topology.kubernetes.io/region"
)

// provisioner makes a directory per claim. Its volumes can be used on every
// node, like those on a network, because all nodes are one machine.
type provisioner struct {
	client  kubernetes.Interface
	dir     string
	out     io.Writer
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// ServeVolumes creates, grows and deletes the volumes of the cluster's
// StorageClass until ctx ends. [Cluster.Up] runs it as a daemon.
func ServeVolumes(ctx context.Context, kubeconfig, dir string, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	p := &provisioner{
		client: client, dir: dir, out: out,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](50*time.Millisecond, 30*time.Second)),
	}
	enqueue := func(o any) {
		if name, err := cache.DeletionHandlingObjectToName(o); err == nil {
			p.queue.Add(name)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, o any) { enqueue(o) }}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(),
		factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch volumes: %w", err)
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("read %s: %w", kind, context.Cause(ctx))
		}
	}
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	for p.processNextItem(ctx) {
	}
	return nil
}

// processNextItem handles one object; claims have a namespace, volumes none.
func (p *provisioner) processNextItem(ctx context.Context) bool {
	name, stopped := p.queue.Get()
	if stopped {
		return false
	}
	defer p.queue.Done(name)
	var err error
	if name.Namespace == "" {
		err = p.volume(ctx, name.Name)
	} else {
		err = p.claim(ctx, name)
	}
	if err == nil || apierrors.IsNotFound(err) {
		p.queue.Forget(name)
		return true
	}
	_, _ = fmt.Fprintf(p.out, "%s %s: %v\n", time.Now().Format(time.RFC3339), name, err) // a lost log line must not stop the work
	p.queue.AddRateLimited(name)
	return true
}

func (p *provisioner) claim(ctx context.Context, name cache.ObjectName) error {
	claim, err := p.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if err != nil {
		return err
	}
	if claim.Annotations[storageProvisioner] != Provisioner || claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return fmt.Errorf("get storage class: %w", err)
	}
	if claim.Spec.VolumeName == "" {
		return p.create(ctx, claim, class)
	}
	return p.grow(ctx, claim)
}

func (p *provisioner) create(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	volume := volumeFor(claim, class, p.dir)
	path := volume.Spec.Local.Path
	// Owned by root as a fresh disk is: a pod that runs as another user needs
	// an fsGroup, here as everywhere.
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("make volume directory: %w", err)
	}
	_, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create volume: %w", err)
	}
	return nil
}

func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, dir string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			StorageClassName:              class.Name,
			VolumeMode:                    claim.Spec.VolumeMode,
			VolumeAttributesClassName:     claim.Spec.VolumeAttributesClassName,
			PersistentVolumeReclaimPolicy: reclaim,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			// Of the kinds without a driver only "local" honours fsGroup.
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: filepath.Join(dir, name)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: regionLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{region},
				}},
			}}}},
		},
	}
}

// grow does what a storage driver's resizer does: the volume, then the claim's status.
func (p *provisioner) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if now := claim.Status.Capacity[corev1.ResourceStorage]; claim.Status.Phase != corev1.ClaimBound || wanted.Cmp(now) <= 0 {
		return nil
	}
	volume, err := p.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return fmt.Errorf("get volume: %w", err)
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; wanted.Cmp(size) > 0 {
		volume = volume.DeepCopy()
		volume.Spec.Capacity[corev1.ResourceStorage] = wanted
		if _, err := p.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("grow volume: %w", err)
		}
	}
	claim = claim.DeepCopy()
	claim.Status.Capacity[corev1.ResourceStorage] = wanted
	if _, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report grown claim: %w", err)
	}
	return nil
}

// volume deletes a volume whose claim is gone, if its policy says so.
func (p *provisioner) volume(ctx context.Context, name string) error {
	volume, err := p.volumes.Get(name)
	if err != nil {
		return err
	}
	if volume.Annotations[provisionedBy] != Provisioner ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	// The path is made from the name again: whatever an object says, nothing
	// outside the directory is ever removed.
	if filepath.Base(name) != name {
		return errors.New("delete volume: its name is no file name")
	}
	if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
		return fmt.Errorf("delete volume directory: %w", err)
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(volume.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete volume: %w", err)
	}
	return nil
}
