// Package schedule decides when a BackupSchedule makes a Backup, and which of its Backups it
// deletes. It is pure.
package schedule
