package failure

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// RefusalNumbers are the numbers of TiDB's errors about users, passwords and rights, also of a password
// that has expired and of a user that is locked.
func RefusalNumbers() []uint16 {
	return []uint16{1044, 1045, 1142, 1143, 1227, 1820, 1862, 3118, 3955, 8121}
}

// OfTool tells from a tool's last words of what kind its failure is.
func OfTool(words string) string {
	for _, c := range []struct{ reason, pattern string }{
		{v1alpha1.ReasonStorageFull, `no space left on device|disk quota exceeded|QuotaExceeded`},
		{v1alpha1.ReasonBucketMissing, `NoSuchBucket|ContainerNotFound`},
		{v1alpha1.ReasonStorageRefused, `AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|googleapi: Error 40[13]|Authentication(Failed|Failure)|Authorization(Failure|PermissionMismatch)|permission denied|read-only file system`},
		{v1alpha1.ReasonCertificateInvalid, `x509: `},
		{v1alpha1.ReasonLogTaskTaken, `ErrStreamLogTaskExist|log backup task is running`},
		{v1alpha1.ReasonLogGap, `ErrBackupGCSafepointExceeded|ErrRestoreInvalidRange|it has gap between|has been gc`},
		{v1alpha1.ReasonDatabaseNotEmpty, `ErrRestoreNotFreshCluster|ErrDatabasesAlreadyExisted|ErrTablesAlreadyExisted`},
		{v1alpha1.ReasonBackupUnreadable, `ErrVersionMismatch|ErrInvalidMetaFile`},
		{v1alpha1.ReasonRunFailed, `failed to get QPS of task`}, // of a store that does not answer BR
		{v1alpha1.ReasonLoginRefused, `Error (` + strings.ReplaceAll(strings.Trim(fmt.Sprint(RefusalNumbers()), "[]"), " ", "|") + `) `},
		{v1alpha1.ReasonDatabaseUnreachable, `Error 2003|invalid connection|bad connection|driver: bad|connect: connection refused|i/o timeout`},
	} {
		if regexp.MustCompile(c.pattern).MatchString(words) {
			return c.reason
		}
	}
	return v1alpha1.ReasonRunFailed
}
