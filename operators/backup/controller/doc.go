// Package controller is the operator of Backups, BackupSchedules, LogBackups and Restores.
//
// It reads them, the TiDBGroups that they name, and its own Jobs with their pods. It writes
// Jobs, Backups of a schedule, the finalizer of a Backup whose files are to be deleted with it,
// and the statuses of its kinds. It reads no Secret and speaks neither to a database nor to a
// storage: the pods of its Jobs do (package runner), and leave their results.
//
// Conditions set: Ready (complete; of a schedule: the last backup is), UpToDate, Reconciling,
// Stalled, and Paused of a schedule. Conditions needed: Ready of the TiDBGroup. Events: one for
// each Job made, Backup made or deleted, and condition that turns, and one if files are kept.
package controller
