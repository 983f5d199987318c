// Command backup-operator runs the operator of Backups, BackupSchedules and Restores.
package main

import (
	"os"

	"github.com/tidb-groups/tidb-groups/operators/backup/controller"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

func main() { os.Exit(operator.Main(controller.Definition())) }
