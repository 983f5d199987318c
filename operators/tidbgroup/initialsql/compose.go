package initialsql

import (
	"cmp"
	_ "embed" // the script
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// File is the name of the composed file, and of the SQL that follows the users.
	File = "bootstrap.sql"
	// container is the name of the init container, which a user finds in messages
	// and may change in an overlay.
	container = "users"

	usersDir        = "/etc/tidb-users"
	usersVolume     = "tidb-groups-users"
	followingDir    = "/etc/tidb-following-sql"
	followingVolume = "tidb-groups-following-sql"
	// anywhere is the host of a user who may connect from everywhere.
	anywhere = "%"
)

// script composes the file. It needs a shell and cat, and is fixed: whatever a
// user chooses is an argument or a file. The kubelet would take two dollar signs
// in a row for one, and a variable of the container's in $() for its value.
//
//go:embed compose.sh
var script string

// Composition is one file of SQL.
type Composition struct {
	// Users that it makes first.
	Users *v1alpha1.InitialUsers
	// Taken is the user whose password the following SQL sets; empty for none.
	Taken string
	// Following is where File is with the SQL that comes after the users; nil for none.
	Following *corev1.VolumeSource
	// Into is where the composed File is written to.
	Into corev1.VolumeMount
	// Image that the script runs in, and when it is pulled.
	Image      string
	PullPolicy corev1.PullPolicy
	// Resources of the container. Those of the pod's main one cost nothing: the
	// scheduler counts the larger of the two, and the quality of service stays.
	Resources v1alpha1.Resources
}

// Container returns the init container that writes the file, and the volumes that
// it reads from.
func (c Composition) Container() (corev1.Container, []corev1.Volume) {
	volumes := []corev1.Volume{{Name: usersVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: c.Users.Secret}}}}
	mounts := []corev1.VolumeMount{c.Into, {Name: usersVolume, MountPath: usersDir, ReadOnly: true}}
	following := ""
	if c.Following != nil {
		following = path.Join(followingDir, File)
		volumes = append(volumes, corev1.Volume{Name: followingVolume, VolumeSource: *c.Following})
		mounts = append(mounts, corev1.VolumeMount{Name: followingVolume, MountPath: followingDir, ReadOnly: true})
	}
	return corev1.Container{
		Name: container, Image: c.Image, ImagePullPolicy: c.PullPolicy,
		Command:         []string{"sh", "-c", script, container, c.Users.Secret, usersDir, cmp.Or(c.Users.Host, anywhere), path.Join(c.Into.MountPath, File), c.Taken, following},
		Resources:       workload.ContainerResources(c.Resources),
		VolumeMounts:    mounts,
		SecurityContext: workload.UnprivilegedContext(false),
	}, volumes
}
