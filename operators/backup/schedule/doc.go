// Package schedule decides when a BackupSchedule makes a Backup, and which of its Backups it
// deletes.
//
// In go the BackupSchedule, its Backups and the time; out come a Backup to make, Backups to
// delete, what status says, and when to look again. It is pure.
package schedule
